# One value where a batch is due.
tidu eval samples/f.json --set x=3 --batch x=0
