# Compressed by the last suffix, and read by the first bytes, from a pipe, too.
tidu linearize samples/f.json --wrt x -o "$TMP/forward.msgpack.gz"
tidu transpose "$TMP/forward.msgpack.gz" | tidu materialize -o "$TMP/gradient.json.gz"
gzip -dc "$TMP/gradient.json.gz" | head -n 1
tidu eval --set x=3 --set y@-1=1 < "$TMP/gradient.json.gz"
tidu eval samples/f.json --set x=3 -o "$TMP/y.npz.gz"
tidu build '2 * y' -i y:f64[] | tidu eval --inputs "$TMP/y.npz.gz"
