# With --force it is replaced.
echo mine > "$TMP/f.h"
tidu build 'x * x' -i x:f64[] -o "$TMP/f.c" --force
head -c 18 "$TMP/f.h"
