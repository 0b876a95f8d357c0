# The suffix of OUT says the format.
tidu convert samples/f.json -o "$TMP/f.msgpack"
head -c 10 "$TMP/f.msgpack" | od -c | head -n 1
tidu convert "$TMP/f.msgpack" -o "$TMP/f.json"
cmp samples/f.json "$TMP/f.json"
