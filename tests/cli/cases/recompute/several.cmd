# Policies that exclude one another.
tidu materialize samples/f.json --recompute sqrt --recompute cheap
