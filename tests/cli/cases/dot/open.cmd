# Pictures name open sizes as listings do.
tidu build 'sum(x * x) / size(x)' -i 'x:f64[N,3]' | tidu dot | grep -F N
