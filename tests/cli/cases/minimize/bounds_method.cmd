# Not every method keeps to bounds.
tidu minimize 'x**2' --set x=1 --wrt x --bounds x=0:2 --method bfgs
