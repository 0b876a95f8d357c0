# Everything that is missing, in one error.
tidu eval tests/cli/cases/eval_errors/three.json --set n=1
