# Tangents of tangents are those of floats.
tidu derivative tests/cli/cases/tangents/square.json --wrt n --order 2 --set n=3
