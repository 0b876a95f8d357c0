# A program takes one value of each input.
tidu compile samples/f.json | tidu eval --set 'x=[1,2]' --batch x=0
