# A file may be read and replaced by one command.
cp samples/f.json "$TMP/f.json"
tidu linearize "$TMP/f.json" --wrt x -o "$TMP/f.json"
tidu check "$TMP/f.json"
