# A store into a NumPy array is told with what to write instead.
cat > "$TMP/model.py" <<'END'
import numpy as np


def f(x):
    out = np.zeros(3)
    for k in range(3):
        out[k] = x[k] ** 2
    return out
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[3]'
