# Without --wrt the columns are those of all inputs that have a derivative.
tidu sparsity samples/rosenbrock.json
