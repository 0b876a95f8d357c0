# Outputs by patterns, and by the first parts of their names.
cd tests/cli/cases/given
tidu eval model.py:decay --set x0=[1,2] --set k=0.5 -i n=1 --output 's*' --quiet
tidu eval model.py:decay --set x0=[1,2] --set k=0.5 -i n=1 --output sum.all --output sum --quiet
tidu build model.py:decay -i x0:f64[2] -i k:f64[] --output 'l?st' | tidu info | tail -n 1
