# Complex numbers.
tidu jacobian samples/complex.json --wrt z --sparse
