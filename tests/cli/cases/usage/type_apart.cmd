# A type without its colon.
tidu build 'x[0]' -i 'x float64[3]'
