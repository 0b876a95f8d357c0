# A --set that the function does not take is an error.
cd tests/cli/cases/given
tidu eval model.py:decay --set x0=[1,2] --set kk=1
