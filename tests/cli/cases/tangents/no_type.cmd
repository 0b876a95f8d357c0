# Wrong usage: no type.
tidu linearize samples/order.json --wrt n --tangent n
