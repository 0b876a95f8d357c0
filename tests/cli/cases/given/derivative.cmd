# A derivative is by one number, which a pattern may name.
cd tests/cli/cases/given
tidu derivative 'sin(x) * a' --set x=0 --set a=2 --wrt 'x*'
tidu derivative 'sin(x) * a' --set x=0 --set a=2 --wrt '*'
