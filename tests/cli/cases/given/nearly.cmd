# A name of data that is nearly that of a parameter without a value is an error, too.
cd tests/cli/cases/given
echo '{"x0": [1, 2], "K": 1, "k_": 1, "n_steps": 1}' | tidu eval model.py:decay --inputs -
