# The sum over a batch.
tidu eval samples/rosenbrock.json --set 'x=[1,2,3]' --set y=2 --batch x=0 --reduce sum
