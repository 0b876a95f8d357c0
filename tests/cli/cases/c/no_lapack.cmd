# What has no C of its own is refused with the option that has LAPACK compute it.
echo 'import numpy as np' > "$TMP/f.py"
echo 'def f(x): return np.linalg.eigvalsh(x)' >> "$TMP/f.py"
tidu build "$TMP/f.py:f" -i x:f64[30,30] -o "$TMP/f.c"
