# One graph of a derivative by an integer.
tidu linearize tests/cli/cases/tangents/square.json --wrt n | tidu transpose | tidu materialize
