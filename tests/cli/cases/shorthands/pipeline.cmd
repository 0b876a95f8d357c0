# What a shorthand does, as commands.
tidu hessian samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2 --pipeline
