tidu eval samples/f.json --set x=3 --engine natve
