# Roles are primes, linear graphs say so, residuals are graphs of their own.
tidu linearize samples/mlp.json --wrt W1 | tidu transpose | tidu show
