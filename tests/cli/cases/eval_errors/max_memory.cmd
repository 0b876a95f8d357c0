# Refused before anything runs, with what takes the most.
tidu eval tests/cli/cases/eval_errors/three.json --output m2 --set 'm=[[1, 2], [3, 4]]' --max-memory 10
