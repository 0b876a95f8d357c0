# A constant for no input.
tidu materialize samples/rosenbrock.json --set z=2
