# With --source each node says which lines of which functions made it.
cat > "$TMP/model.py" <<'END'
import numpy as np

def loss(x):
    return square(np.sin(x)).sum()

def square(x):
    return x * x
END
cd "$TMP" && tidu build model.py:loss -i x:f64[3] --source | tidu grad --wrt x
