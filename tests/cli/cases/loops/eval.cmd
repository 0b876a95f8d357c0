# A loop runs.
tidu eval samples/logistic_map.json --set r=3.2 --set x=0.3
