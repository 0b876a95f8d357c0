# As many bounds as numbers.
tidu minimize 'sum(x**2)' --set x=[1,5] --wrt x --bounds x=[0,0,0]:
