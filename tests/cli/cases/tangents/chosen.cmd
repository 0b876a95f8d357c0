# A tangent type other than the natural one is converted at the start.
tidu linearize samples/order.json --wrt n --tangent 'n=f32[]'
