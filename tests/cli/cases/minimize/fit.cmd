# The values of what is chosen are printed, and what was done is told.
tidu minimize '(x - 3)**2 + y**2' --set x=1 --set y=0 --wrt x --wrt y
