# Reverse over reverse takes x@-1@-2 and gives x@-2.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu linearize --wrt x | tidu transpose | tidu materialize | tidu eval --set x=3 --set y@-1=1 --set x@-1@-2=1
