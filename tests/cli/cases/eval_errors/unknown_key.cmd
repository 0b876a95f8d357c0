# --set of a key that no graph has.
tidu linearize samples/f.json --wrt x | tidu eval --set x=3 --set x@2=1
