# One graph, with the types that it uses.
tidu linearize samples/events.json --wrt events | tidu transpose | tidu materialize --set loss@-1=1
