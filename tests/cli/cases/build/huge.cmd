# A formula allocates nothing.
tidu build 'sum(ones((100000, 100000)) * x)' -i 'x:f64[]' --format json
