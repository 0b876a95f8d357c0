# A header that tidu did not write stays, but with --force.
echo mine > f.h; tidu build 'x * x' -i x:f64[] -o f.c; cat f.h; tidu build 'x * x' -i x:f64[] -o f.c --force && head -c 18 f.h
