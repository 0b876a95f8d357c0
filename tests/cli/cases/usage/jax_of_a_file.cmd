# --jax is of functions.
tidu eval samples/f.json --jax --set x=1
