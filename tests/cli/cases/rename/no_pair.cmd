# What is no pair.
tidu rename samples/f.json --key x
