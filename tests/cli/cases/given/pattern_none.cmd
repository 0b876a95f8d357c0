# A pattern of outputs that matches none is an error.
cd tests/cli/cases/given
tidu eval 'y = x; z = 2 * x' --set x=1 --output 'w*'
