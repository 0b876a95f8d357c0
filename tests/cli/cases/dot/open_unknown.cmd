# A group that there is none of.
tidu dot samples/mlp.json --open layer1
