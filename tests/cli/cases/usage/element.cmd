# Elements of an array have no key.
tidu grad 'sum(x**2)' --set x=1,2 --wrt 'x[0]'
