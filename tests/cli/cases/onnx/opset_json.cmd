# JSON has no operator sets.
tidu convert samples/f.json --opset 18
