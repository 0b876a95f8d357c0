# A value that is not JSON.
tidu eval samples/f.json --set x=three
