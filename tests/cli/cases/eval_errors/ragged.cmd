# Rows of different lengths.
tidu eval tests/cli/cases/eval_errors/three.json --output m2 --set 'm=[[1, 2], [3]]'
