# A matrix that does not fit.
tidu minimize 'sum(x**2)' -i x:f64[8] --set x=[1,2,3,4,5,6,7,8] --wrt x --method BFGS --max-memory 500
