# The gradient of the sum of an array, with its value.
tidu grad 'x**2' --sum --value --set x=1,2,3
