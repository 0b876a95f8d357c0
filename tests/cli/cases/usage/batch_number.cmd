# How many, where --batch says of which input and along which axis.
tidu eval samples/f.json --set x=1,2,3 --batch 3
