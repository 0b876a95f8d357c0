# A malformed key.
tidu linearize samples/f.json --wrt x@one
