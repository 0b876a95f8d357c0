# Nodes at a kink, on stderr; outputs are as without.
tidu eval samples/kinks.json --set 'x=[-2,-1,0,1,2]' --kinks
tidu eval samples/cube.json --set x=2 --kinks
