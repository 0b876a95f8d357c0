# A cotangent is not computed before the cotangents.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu materialize --recompute value=x@-1
