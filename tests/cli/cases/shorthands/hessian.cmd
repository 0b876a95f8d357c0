# All second derivatives in one evaluation.
tidu hessian samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2
