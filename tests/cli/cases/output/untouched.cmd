# A command that fails leaves OUT as it was, and nothing beside it.
cp samples/f.json "$TMP/out.json"
tidu linearize samples/f.json --wrt z -o "$TMP/out.json" || echo "status $?"
cmp samples/f.json "$TMP/out.json"
ls -A "$TMP"
