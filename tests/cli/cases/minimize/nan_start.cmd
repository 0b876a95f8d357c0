# Not a number where it starts.
tidu minimize 'loss = sum(log(x))' --set x=[1,-1] --wrt x
