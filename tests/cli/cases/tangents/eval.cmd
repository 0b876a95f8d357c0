# The tangent of an integer is a float.
tidu linearize samples/order.json --wrt n | tidu eval --set n=250 --set 'price=[9,8,7]' --set express=true --set n@1=0.5
