# Groups, and what is in one of them: here the steps of a loop, which nothing but their likeness tells.
cat > "$TMP/orbit.py" <<'END'
import numpy as np

def orbit(x):
    for _ in range(20):
        x = x - np.sin(x) * np.cos(x + 1)
    return x
END
tidu build "$TMP/orbit.py:orbit" -i x:f64[] | tidu dot --depth 0 --open 'step 3'
