# A function of NumPy that graphs have not got is told with what to write instead.
cat > "$TMP/model.py" <<'END'
import numpy as np


def f(a, b):
    return np.roots(a)
END
cd "$TMP"
tidu build model.py:f -i 'a:f64[3,3]' -i 'b:f64[3]'
