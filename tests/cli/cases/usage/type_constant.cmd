# A type where a constant is due, as NumPy writes it.
tidu build 'x[0]' -i 'x=float64[3]'
