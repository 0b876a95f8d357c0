# As a report.
tidu minimize '(x - 3)**2' --set x=1 --wrt x --json | sed 's/"message": "[^"]*", //'
