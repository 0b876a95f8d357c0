# An integer whose default is one is a constant, and a note says so.
cd tests/cli/cases/given
tidu eval model.py:decay --set x0=[1,2] --set k=0.5 --set n=1 --output last
