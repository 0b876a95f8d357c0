# Wrong usage: no value.
tidu eval samples/f.json --set x
