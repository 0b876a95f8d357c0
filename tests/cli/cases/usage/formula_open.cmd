tidu build '(x' -i 'x:f64[]'
