# The gradient by an integer.
tidu grad samples/order.json --output total --wrt n --set n=250 --set 'price=[9,8,7]' --set express=true
