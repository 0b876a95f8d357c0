tidu eval samples/f.json --set x=3 --engine numpy -v 2>&1 | grep -v ' s$'
