# A formula in the place of a file, its types from data.
cd tests/cli/cases/given
tidu eval 'sin(x) * y' -i x -i y --set x=1 --set y=2
tidu grad 'sum(x ** n)' -i n=3 --set x=[1,2] --wrt x
tidu eval x/y --set x=1 --set y=2
tidu grad 'x ** 2' -i x:f32[] --wrt x | tidu eval --set x=3
