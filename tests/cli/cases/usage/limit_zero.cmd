tidu eval samples/f.json --set x=1 --max-steps 0
