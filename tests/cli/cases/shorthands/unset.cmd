# What is missing to evaluate.
tidu hvp samples/rosenbrock.json --wrt x --set x=1
