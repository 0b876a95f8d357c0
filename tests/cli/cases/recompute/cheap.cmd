# What costs little for the bytes that it takes.
tidu build 'sin(sin(sin(sin(sin(sin(sin(sin(x))))))))' -i x:f64[1000] | tidu linearize --wrt x | tidu transpose | tidu materialize --recompute cheap=0.25 | tidu info
