tidu eval samples/f.json --set x=
