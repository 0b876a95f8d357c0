# What to choose is to be said.
tidu minimize 'x**2' --set x=1
