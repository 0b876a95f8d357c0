# The name of a pytree stands for its leaves.
cd tests/cli/cases/given
tidu grad model.py:loss --inputs data.json --wrt params.layers.1 | sed -E 's/(\.[0-9]{12})[0-9]+/\1/g'
