# An integer that -i gives is the size of its name in types, too, where several documents take it as well; not a float, nor 0.
tidu build 'n*sum(x)' -i 'x:f64[2*n,m]' -i n=3 | tidu show -
tidu compose 'v = n*u' 'sum(v)' -i 'u:f64[n]' -i 'v:f64[n]' -i n=3 --quiet | tidu show -
tidu show 'n*sum(x)' -i 'x:f64[n]' -i n=2.5
tidu show 'n*sum(x)' -i 'x:f64[n]' -i n=0 || true
