# Nothing to choose.
tidu minimize 'sum(x)' -i x:f64[0] --set x=[] --wrt x
