# A tangent type for what is not differentiated by.
tidu linearize samples/order.json --wrt n --tangent 'price=f64[3]'
