# The graph of it.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu linearize --wrt x | tidu materialize
