tidu derivative 'x**2' -i 'x:f64[]' --wrt x --order two
