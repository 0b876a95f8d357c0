# Options that exclude one another.
tidu convert samples/f.json --types --nodes packed
