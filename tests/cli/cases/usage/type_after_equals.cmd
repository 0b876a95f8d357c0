# A type follows a colon.
tidu build 'sum(x**2)' -i 'x=f64[3]'
