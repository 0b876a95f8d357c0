# Numbers are finite, from 0 on.
tidu step samples/f.json --wrt x --lr=-1
