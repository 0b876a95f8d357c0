# A suffix of a format that the command does not write.
tidu linearize samples/f.json --wrt x -o "$TMP/out.png"
