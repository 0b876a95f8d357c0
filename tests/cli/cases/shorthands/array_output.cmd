# A gradient is of one real number.
tidu grad samples/vector.json --wrt x
