# The gradient is two loops: one that stores what the other needs, which runs from the end.
tidu linearize samples/logistic_map.json --wrt r | tidu transpose | tidu materialize
