# In the body of a loop, too, and with other options: 1 is set for a, by which each step multiplies.
cat > "$TMP/f.py" <<'END'
import numpy as np
import tidu_cli as tidu
def f(x, a):
    return tidu.fori_loop(0, 5, lambda k, v: np.sin(v * 1.0) - (-v), x) * a
END
tidu build "$TMP/f.py:f" -i x:f64[] -i a:f64[] | tidu grad --wrt x -o "$TMP/gradient.json"
tidu materialize "$TMP/gradient.json" --set a=1 -o "$TMP/before.json"
tidu materialize "$TMP/gradient.json" --set a=1 --simplify --recompute 2 -o "$TMP/after.json"
for file in before after; do
    grep -c -E '"op": "(mul|constant)"' "$TMP/$file.json"
    tidu eval "$TMP/$file.json" --set x=0.5
done
