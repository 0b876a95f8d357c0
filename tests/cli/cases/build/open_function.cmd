# Functions of NumPy: x.shape[0] is a size; loops over an open axis name scan.
printf 'import numpy as np\ndef mean(x):\n    return np.sum(x, axis=0) / x.shape[0]\ndef total(x):\n    return sum(row for row in x)\n' > "$TMP/f.py"
cd "$TMP"
tidu show "f.py:mean" -i 'x:f64[N,3]'
tidu build f.py:total -i 'x:f64[N,3]'
