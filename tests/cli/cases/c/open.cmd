# Open sizes are given numbers first; nothing is written.
tidu build 'sum(x * x)' -i 'x:f64[N]' -o "$TMP/f.json"
tidu convert "$TMP/f.json" -o "$TMP/f.c" || ls "$TMP"
tidu convert "$TMP/f.json" --size N=4 -o "$TMP/f.c"
ls "$TMP"
