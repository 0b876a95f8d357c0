# A pass that is taken.
tidu linearize samples/f.json --wrt x | tidu linearize --wrt x --pass 1
