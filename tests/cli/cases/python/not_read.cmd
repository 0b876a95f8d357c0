# It is a function of Python, which has a name.
tidu convert samples/f.json -o "$TMP/f.py"
tidu info - < "$TMP/f.py"
