# The gradient of a sum over a chain of operations: loops, places that are used again, the header beside it.
tidu grad 'sum(a * sin(x))' -i x:f64[3] -i a:f64[] --wrt x -o "$TMP/gradient.c"
cat "$TMP/gradient.c" "$TMP/gradient.h"
