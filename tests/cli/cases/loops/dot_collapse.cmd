# With --collapse it is one node.
tidu dot --collapse samples/logistic_map.json
