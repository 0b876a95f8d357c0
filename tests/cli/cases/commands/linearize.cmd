# The linear graph comes after the graph that it differentiates, and refers to its values as [0, v].
tidu linearize samples/f.json --wrt x
