# Jacobian blocks of integers and by integers.
tidu jacobian tests/cli/cases/tangents/square.json --wrt n --set n=3
