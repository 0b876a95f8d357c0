# The values of the outputs, by key.
tidu eval samples/f.json --set x=3
