# The gradient of the sum of an array, with its value, also of a matrix and of a number.
tidu grad 'x**2' --sum --value --set x=1,2,3 && tidu grad 'outer(x, x)' --sum --value --set x=1,2 && tidu grad 'x * y' --sum --value --set x=3 --set y=2
