# --batch of what is no input.
tidu eval samples/f.json --set 'x=[1,2,3]' --batch z=0
