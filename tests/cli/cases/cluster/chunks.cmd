# A batch in chunks, here: the same results.
tidu eval samples/rosenbrock.json --set 'x=[1,2,3]' --set y=2 --batch x=0 --chunk 2
