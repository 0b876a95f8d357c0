# --batch and --move do not go together.
tidu eval samples/f.json --set 'x=[1,2,3]' --batch x=0 --move x=1
