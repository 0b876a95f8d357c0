# Integer operands are converted in the residual graph, where the rule reads them.
tidu linearize tests/cli/cases/tangents/square.json --wrt n
