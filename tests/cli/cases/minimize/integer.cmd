# Optimizers move floats.
tidu minimize samples/order.json --output total --wrt n --set n=100 --set price=[3,2,1] --set express=true
