# The same in msgpack.
tidu convert samples/f.json --format msgpack | head -c 50 | tidu check
