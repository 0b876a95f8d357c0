# A transposed graph, and ops that the table cuts short.
tidu linearize samples/mlp.json --wrt W1 | tidu transpose | tidu info
