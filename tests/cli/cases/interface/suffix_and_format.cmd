# A suffix of no format: wrong usage, told before anything is read, unless --format says which it is.
tidu convert samples/f.json -o "$TMP/f.out" --format json
cat "$TMP/f.out"
tidu dot no-such-file.json -o "$TMP/f.jpg"
