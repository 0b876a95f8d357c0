"""Special functions and functions of matrices that JAX lacks, or that tidu has better: of JAX's operations, without callbacks."""
