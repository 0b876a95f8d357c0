# Constants of Python, in structures too; what the function prints goes to standard error.
cd tests/cli/cases/given
tidu eval model.py:decay --set x0=[1,2] --set k=0.5 -i 'mode="exact"' -i 'config={"steps": 1}' -i config.rate:f64[] --set config.rate=0.2
