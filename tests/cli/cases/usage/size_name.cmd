tidu eval 'x**2' -i 'x:f64[n]' --set x=[1,2]
