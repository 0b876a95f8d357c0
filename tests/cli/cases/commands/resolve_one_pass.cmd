# Two outputs of one function, linearized apart, along one direction.
tidu linearize samples/two_outputs.json --wrt r --output x -o $TMP/x.json
tidu linearize samples/two_outputs.json --wrt r --output y -o $TMP/y.json
tidu resolve $TMP/x.json $TMP/y.json --one-pass 1
