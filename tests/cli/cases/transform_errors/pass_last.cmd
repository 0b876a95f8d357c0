# No pass number is left.
tidu linearize samples/f.json --wrt x --pass 9007199254740991 | tidu linearize --wrt x
