# An output of one element is one number, which keeps its axes.
cd tests/cli/cases/shorthands
tidu grad 'reshape(sum(x**3), (1, 1))' -i x:f64[3] --wrt x --value --set x=1,2,3
tidu hvp 'reshape(sum(x**3), (1, 1))' -i x:f64[3] --wrt x --pipeline
