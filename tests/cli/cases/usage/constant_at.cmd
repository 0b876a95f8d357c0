tidu eval 'x**n' -i 'x:f64[]' -i n=@ --set x=1
