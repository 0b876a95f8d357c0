# A number of operations for each byte is a number.
tidu materialize samples/f.json --recompute cheap=little
