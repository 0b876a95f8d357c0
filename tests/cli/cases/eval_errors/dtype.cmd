# A fraction for an integer.
tidu eval tests/cli/cases/eval_errors/three.json --output n2 --set n=1.5
