# Names of a formula without a type are numbers.
tidu build 'a * x**2' | tidu eval --set a=2 --set x=3
