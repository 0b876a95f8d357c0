# A graph that is not there.
tidu materialize samples/f.json --recompute graph=g
