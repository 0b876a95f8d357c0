# Bounds are two.
tidu minimize 'x**2' --set x=1 --wrt x --bounds x=2
