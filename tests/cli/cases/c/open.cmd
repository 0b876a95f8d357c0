# Open sizes are arguments, before all else. What needs a number is refused by its node, and nothing is written.
tidu build 'mean(x * x) + size' -i 'x:f64[N,M]' -i 'size:f64[]' -o "$TMP/f.json"
tidu grad "$TMP/f.json" --wrt x -o "$TMP/gradient.c"
cat "$TMP/gradient.c" "$TMP/gradient.h"
echo 'import numpy as np' > "$TMP/f.py"
echo 'def f(x): return np.fft.fft(x)' >> "$TMP/f.py"
tidu build "$TMP/f.py:f" -i 'x:c128[N]' -o "$TMP/g.c" || ls "$TMP" | grep c$
