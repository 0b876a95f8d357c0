# The JSON Schema, for other programs.
tidu schema -o "$TMP/schema.json"
python -m json.tool "$TMP/schema.json" > "$TMP/tidy.json"
head -n 4 "$TMP/schema.json"
