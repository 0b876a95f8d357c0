# JVP: y' = 4x x' for y = (x + x) x.
tidu linearize samples/f.json --wrt x | tidu materialize | tidu eval --set x=3 --set x@1=1
