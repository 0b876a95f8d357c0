# What view makes, and who makes the other.
tidu view samples/f.json -o "$TMP/f.svg"
