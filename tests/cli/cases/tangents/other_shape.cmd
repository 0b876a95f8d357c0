# A tangent has the shape of its primal.
tidu linearize samples/order.json --wrt price --tangent 'price=f64[]'
