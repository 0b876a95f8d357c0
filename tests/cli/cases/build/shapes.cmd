# Shapes that do not fit are told with the column.
tidu build 'x + sum(x @ w)' -i 'x:f64[3]' -i 'w:f64[4]'
