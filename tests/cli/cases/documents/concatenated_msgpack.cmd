# The same in msgpack.
(tidu convert samples/f.json --format msgpack; tidu convert samples/f.json --format msgpack) | tidu check
