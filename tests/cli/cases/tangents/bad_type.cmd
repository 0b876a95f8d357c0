# Wrong usage: no such type.
tidu linearize samples/order.json --wrt n --tangent n=f46
