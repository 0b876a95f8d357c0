# --pass chooses the number of the pass.
tidu linearize samples/f.json --wrt x --pass 7 | tidu info
