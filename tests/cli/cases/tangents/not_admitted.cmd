# A tangent type that an integer does not admit.
tidu linearize samples/order.json --wrt n --tangent 'n=f16[]'
