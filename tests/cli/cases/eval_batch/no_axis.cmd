# An axis that is no number.
tidu eval samples/f.json --set 'x=[1,2,3]' --batch x=0.5
