# A header that tidu did not write stays.
echo mine > "$TMP/f.h"
tidu build 'x * x' -i x:f64[] -o "$TMP/f.c"
