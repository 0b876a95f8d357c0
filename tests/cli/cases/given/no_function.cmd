# A file of Python is no document: its functions are.
cd tests/cli/cases/given
tidu grad model.py --wrt x
