# Unknowns that the output does not depend on.
tidu minimize 'x**2 + floor(y)' --set x=1 --set y=0.5 --wrt '*'
