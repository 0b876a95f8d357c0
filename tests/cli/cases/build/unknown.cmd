# A function that formulas do not have is told with its column.
tidu build 'x + sine(x)' -i 'x:f64[]'
