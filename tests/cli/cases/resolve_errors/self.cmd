# An input bound to an output of its own graph.
tidu resolve samples/f.json --bind x=y
