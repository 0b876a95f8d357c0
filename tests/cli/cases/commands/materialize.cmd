# One graph that refers to no other. What both graphs compute is computed once.
tidu linearize samples/f.json --wrt x | tidu materialize
