tidu grad samples/f.json --wrt x --set x=3 --engine native -v 2>&1 | grep -v ' s$'
