# Complex derivatives are linear over the reals only.
tidu jacobian samples/complex.json --wrt z
