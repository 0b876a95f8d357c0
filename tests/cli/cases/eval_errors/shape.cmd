# A list of another shape.
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set 'a=[1, 2, 3]'
