# The name of a pytree stands for its leaves.
cd tests/cli/cases/given
tidu grad model.py:loss --inputs data.json --wrt params.layers.1
