# Passes exchanged: in keys, in graphs that are linear, and in their names.
tidu linearize samples/f.json --wrt x --detach | tidu convert --pass 1=7
tidu linearize samples/f.json --wrt x | tidu linearize --wrt x | tidu convert --pass 1=2 --pass 2=1 | tidu info
