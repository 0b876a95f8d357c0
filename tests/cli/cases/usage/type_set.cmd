# A type where a value is due.
tidu eval 'x[0]' --set 'x=float64[3]'
