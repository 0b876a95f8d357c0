# The name is that of a variable which no one has set.
tidu linearize samples/f.json --wrt x -o ''
