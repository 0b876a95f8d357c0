# A pipeline has no part of it.
tidu jacobian samples/vector.json --wrt x --sparse --pipeline
