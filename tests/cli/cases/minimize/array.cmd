# An array is no cost.
tidu minimize samples/vector.json --wrt x --set x=[1,2,3]
