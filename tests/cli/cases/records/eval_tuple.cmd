# Tuples are lists.
tidu eval tests/cli/cases/records/tuple.json --set 'p=[[1, 2], 90]'
