# Transposing twice gives the first map again, in other words.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu transpose | tidu materialize | tidu eval --set x=3 --set x@1=1
