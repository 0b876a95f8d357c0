# A value without its option.
tidu eval samples/f.json x=3
