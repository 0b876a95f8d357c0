# msgpack and JSON have the same records.
tidu linearize samples/events.json --wrt events | tidu transpose | tidu convert --format msgpack -o "$TMP/reverse.msgpack"
tidu linearize samples/events.json --wrt events | tidu transpose | tidu diff --exact - "$TMP/reverse.msgpack"
