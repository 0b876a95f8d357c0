# A format that the command does not write.
tidu linearize samples/f.json --wrt x --format npz
