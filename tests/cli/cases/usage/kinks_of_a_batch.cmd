# Kinks are of one point.
tidu eval samples/kinks.json --set 'x=[[-2,-1,0,1,2]]' --batch x=0 --kinks
