# A method of nearly that name.
tidu minimize 'x**2' --set x=1 --wrt x --method LBFGSB
