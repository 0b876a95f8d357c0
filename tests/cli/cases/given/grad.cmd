# The gradient of a function of a file by all its parameters, with names, types and values from data.
cd tests/cli/cases/given
tidu grad model.py:loss --inputs data.json --wrt 'params.*' | sed -E 's/(\.[0-9]{12})[0-9]+/\1/g'
