# An array file that is not there.
tidu eval samples/f.json --set x=@nowhere.npy
