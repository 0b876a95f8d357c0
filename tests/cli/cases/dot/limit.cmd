# Large pictures are refused, with what to do.
tidu linearize samples/mlp.json --wrt W1 | tidu dot --format svg --limit 20
