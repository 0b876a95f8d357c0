# With --collapse each graph but the head is one node between its inputs and outputs.
tidu linearize samples/mlp.json --wrt W1 | tidu transpose | tidu dot --collapse --types
