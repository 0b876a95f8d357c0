# The cotangent of an integer has the type of its tangent.
tidu linearize samples/order.json --wrt n | tidu transpose
