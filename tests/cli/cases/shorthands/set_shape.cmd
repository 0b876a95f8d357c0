# A constant of another shape.
tidu materialize samples/rosenbrock.json --set y=[1,2]
