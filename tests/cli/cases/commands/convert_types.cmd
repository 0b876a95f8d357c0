# --types tells the result types of every node.
tidu convert samples/f.json --types
