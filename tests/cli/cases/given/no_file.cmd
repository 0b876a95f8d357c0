# A file that is nearly there is told.
cd tests/cli/cases/given
tidu grad modle.py:loss --wrt x 2>&1 || true
tidu eval dat.json 2>&1 || true
tidu eval nowhere.json
