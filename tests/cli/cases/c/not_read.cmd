# C is not read.
tidu build 'x * x' -i x:f64[] -o f.c && tidu info f.c
