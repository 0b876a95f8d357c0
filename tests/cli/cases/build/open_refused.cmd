# Two sizes are not taken for one; the way out is one name.
tidu build 'x + y' -i 'x:f64[N]' -i 'y:f64[M]'
