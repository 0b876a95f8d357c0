# Reverse over forward.
tidu linearize samples/f.json --wrt x | tidu linearize --wrt x | tidu transpose | tidu eval --set x=3 --set x@1=1 --set y@1@-2=1
