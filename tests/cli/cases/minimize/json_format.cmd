# The report is JSON.
tidu minimize 'x**2' --set x=1 --wrt x --json --format npz
