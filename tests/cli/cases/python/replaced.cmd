# Source that tidu wrote is replaced, but not while a function of it is read.
tidu convert samples/f.json -o "$TMP/f.py"
tidu convert samples/cube.json -o "$TMP/f.py"
tidu grad "$TMP/f.py:cube" -i x:f64[] --wrt x -o "$TMP/f.py" || { s=$?; grep return "$TMP/f.py"; exit $s; }
