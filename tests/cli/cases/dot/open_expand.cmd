# Groups, or every node.
tidu dot samples/mlp.json --depth 1 --expand
