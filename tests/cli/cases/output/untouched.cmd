# A command that fails leaves OUT as it was, and nothing beside it.
echo before > "$TMP/out.json"
tidu linearize samples/f.json --wrt z -o "$TMP/out.json" || echo "status $?"
cat "$TMP/out.json"
ls -A "$TMP"
