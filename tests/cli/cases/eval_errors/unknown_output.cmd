# An output that no graph has.
tidu eval samples/f.json --set x=3 --output yy
