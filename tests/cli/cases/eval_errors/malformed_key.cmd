# A malformed key.
tidu eval samples/f.json --set x@=3
