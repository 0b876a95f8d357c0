# A directory that does not exist.
tidu linearize samples/f.json --wrt x -o "$TMP/nowhere/out.json"
