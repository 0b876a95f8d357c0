# A directory in place of a file.
tidu linearize samples/f.json --wrt x -o "$TMP"
