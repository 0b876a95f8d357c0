# Two values of one input are a mistake, and the last one is not taken; the same one again changes nothing.
tidu eval samples/f.json --set x=3 --set x=3
tidu eval samples/f.json --set x=3 --set x=4
