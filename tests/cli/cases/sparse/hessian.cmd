# The entries of a Hessian.
tidu hessian samples/rosenbrock.json --wrt x --wrt y --sparse --set x=1 --set y=2
