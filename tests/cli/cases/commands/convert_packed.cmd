# Packed nodes are columns: the default in msgpack.
tidu convert samples/f.json --nodes packed
