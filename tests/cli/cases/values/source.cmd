# A file that is no result is not written over, whatever --format says.
echo 'print(1)' > "$TMP/model.py"
tidu convert samples/f.json -o "$TMP/model.py" || { s=$?; cat "$TMP/model.py"; exit $s; }
