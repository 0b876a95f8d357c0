tidu eval 'x**2' -i 'x:float64[2]' --set x=[1,2]
