# A derivative of higher order is by one number.
tidu derivative samples/vector.json --wrt x --order 2
