# An integer that is only an index has the derivative zero, and is refused where it is named.
cd tests/cli/cases/given
tidu linearize 'sum(table[n] * x)' -i table:f64[5] -i n:i64[3] -i x:f64[3] --wrt x --wrt n
