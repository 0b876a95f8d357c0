# Laws are tried at two choices of the sizes that are open, with a line for each.
tidu build 'mean(x**2) + size(x)' -i 'x:f64[N,M]' | tidu check --numeric | sed -E 's/\b(0|[0-9]e-(08|09|[1-9][0-9]))\b/small/g'
