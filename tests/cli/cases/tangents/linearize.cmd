# By an integer: as a number it has a tangent, as an index it has none.
tidu linearize samples/order.json --wrt n
