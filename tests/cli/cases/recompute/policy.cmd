# No such policy.
tidu materialize samples/f.json --recompute squrt
