# C is not read.
tidu build 'x * x' -i x:f64[] -o "$TMP/f.c"
tidu info < "$TMP/f.c"
