# The residual graph states the type of what it reads by digest.
tidu linearize tests/cli/cases/tangents/square.json --wrt n --detach
