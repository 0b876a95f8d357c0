# VJP: the gradient 4x.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu materialize | tidu eval --set x=3 --set y@-1=1
