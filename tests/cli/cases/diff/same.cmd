# The file format makes no difference.
tidu convert samples/f.json --format msgpack | tidu diff samples/f.json -
