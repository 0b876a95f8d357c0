# The gradient of a real number, and its value.
tidu grad samples/rosenbrock.json --wrt x --wrt y --value --set x=1 --set y=2
