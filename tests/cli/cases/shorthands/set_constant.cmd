# Inputs made constants.
tidu materialize samples/rosenbrock.json --set y=2
