# Wrong usage: no --wrt.
tidu linearize samples/f.json
