# An integer that does not fit.
tidu eval tests/cli/cases/eval_errors/three.json --output n2 --set n=3000000000
