# Of several outputs one must be chosen.
tidu grad samples/two_outputs.json --wrt r
