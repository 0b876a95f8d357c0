tidu eval samples/f.json --set x=[1,2] --batch x
