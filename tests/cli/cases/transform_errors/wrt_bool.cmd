# A bool has only the tangent zero.
tidu linearize samples/order.json --wrt express
