# Nor has what is set.
tidu eval samples/vector.json --set 'x[0]=1'
