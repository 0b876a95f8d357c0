# A suffix and another --format.
tidu convert samples/f.json -o "$TMP/f.msgpack" --format json
