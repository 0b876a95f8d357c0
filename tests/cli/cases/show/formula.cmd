# A gradient as a formula, which builds again.
tidu build 'sin(x) * y + y**3' -i 'x:f64[]' -i 'y:f64[]' | tidu grad --wrt x --wrt y | tidu show --formula
