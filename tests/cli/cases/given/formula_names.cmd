# A formula without types says which name has none.
cd tests/cli/cases/given
tidu eval 'sin(x) * y' --set x=1
