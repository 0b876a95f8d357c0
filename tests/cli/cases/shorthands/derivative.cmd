# Derivatives of higher order; the fifth of a quartic is zero.
tidu derivative samples/quartic.json --wrt x --order 4 --set x=2
tidu derivative samples/quartic.json --wrt x --order 5 --set x=2
