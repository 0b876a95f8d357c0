# Batches of different sizes.
tidu eval samples/rosenbrock.json --set 'x=[1,2,3]' --set 'y=[1,2]' --batch x=0 --batch y=0
