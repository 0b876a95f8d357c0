# --output takes outputs of any graph: here the value and its derivative.
tidu linearize samples/f.json --wrt x | tidu materialize --output y --output y@1
