# A number for an array: nothing is broadcast.
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set a=1
