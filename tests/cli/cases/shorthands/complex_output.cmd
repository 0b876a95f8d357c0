# Of a complex output there is no gradient.
tidu grad samples/complex.json --wrt z --output square
