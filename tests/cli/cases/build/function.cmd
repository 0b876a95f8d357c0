# Nested inputs go by keys with dots.
cat > "$TMP/model.py" <<'END'
import numpy as np


def loss(params, x, scale=2.0):
    return {'loss': np.sum((x @ params['w']) ** 2) * scale}
END
cd "$TMP"
tidu build model.py:loss -i 'params.w:f64[2]' -i 'x:f64[3,2]'
