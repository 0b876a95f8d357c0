# Small graphs are NumPy's, also if other engines are there.
tidu eval samples/f.json --set x=3 -v 2>&1 | grep engine
