# Bounds that nothing is between.
tidu minimize 'x**2' --set x=1 --wrt x --bounds x=2:1
