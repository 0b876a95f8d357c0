# Inputs must have the declared type, as in eval.
echo '{"x": [1, 2]}' | tidu check samples/rosenbrock.json --numeric --inputs -
