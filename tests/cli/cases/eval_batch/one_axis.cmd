# A graph at many values of an input: outputs have the batch as their first axis.
tidu eval samples/f.json --set 'x=[1,2,3]' --batch x=0
