# Wrong usage: no pass.
tidu linearize samples/f.json --wrt x --pass 0
