# The pattern of a Jacobian as text.
tidu sparsity samples/vector.json --wrt x
