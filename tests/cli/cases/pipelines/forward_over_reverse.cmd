# Forward over reverse: the second derivative 4.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu linearize --wrt x | tidu materialize | tidu eval --set x=3 --set y@-1=1 --set x@2=1
