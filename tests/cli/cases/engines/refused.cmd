# An engine that runs nothing of a graph says what it is of.
tidu build 'x @ x' -i 'x:f64[30,30]' -o "$TMP/f.json" && tidu eval "$TMP/f.json" --set x=0 --engine native
