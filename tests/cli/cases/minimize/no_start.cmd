# The search starts somewhere.
tidu minimize samples/rosenbrock.json --set x=1 --wrt x --wrt y
