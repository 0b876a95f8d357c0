# Large products by BLAS and eigenvalues by LAPACK; the options are for C.
echo 'import numpy as np' > "$TMP/f.py"
echo 'def f(x): return np.linalg.eigvalsh(x)[-1] * np.sum(x @ x)' >> "$TMP/f.py"
tidu build "$TMP/f.py:f" -i x:f64[30,30] | tidu convert --blas --lapack --format c | grep '_('
tidu build "$TMP/f.py:f" -i x:f64[30,30] | tidu convert --blas --lapack --format c | grep 'cblas_'
tidu build 'x * x' -i x:f64[] | tidu convert --lapack
