# Matrices are spread where they are evaluated.
tidu jacobian samples/vector.json --wrt x --scheduler local:2
