# Bounds of what is not chosen.
tidu minimize 'x**2 * y' --set x=1 --set y=1 --wrt x --bounds y=0:1
