# Documents name inputs, outputs and, as messages do, nodes; so do functions and formulas.
tidu grad samples/f.json --stop x --wrt x --set x=3
tidu convert samples/f.json --stop 'node 0' | tidu grad --wrt x --set x=3
tidu grad 'x * sin(x)' --stop 'node 0' --wrt x --set x=3
tidu convert samples/f.json --stop 'nod 0'
