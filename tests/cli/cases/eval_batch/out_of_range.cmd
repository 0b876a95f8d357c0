# An axis that a batch of the input does not have.
tidu eval samples/f.json --set 'x=[1,2,3]' --batch x=1
