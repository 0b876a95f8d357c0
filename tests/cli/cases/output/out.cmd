# -o writes a file, and nothing to stdout.
tidu linearize samples/f.json --wrt x -o "$TMP/out.json"
tidu check "$TMP/out.json"
