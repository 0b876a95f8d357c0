# Or as a function of NumPy.
cat > $TMP/own.py <<'END'
import numpy as np

def lion(gradient, weight, lr, m):
    return {"new_weight": weight - lr * np.sign(0.9 * m + 0.1 * gradient), "new_m": 0.99 * m + 0.01 * gradient}
END
tidu step 'loss = w * w' -i w:f64[] --wrt w --optimizer $TMP/own.py:lion --lr 0.1 | tidu eval --set w=3 --set m.w=0
