# A formula executes nothing.
tidu build '__import__("os").system("echo executed")' -i 'x:f64[]'
