# A batch is of values.
tidu grad samples/f.json --batch x=0
