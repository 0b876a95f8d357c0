# A loop that ends by a condition counts its steps; --max-steps says how many there may be.
cat > "$TMP/f.py" <<'END'
import tidu


def f(x):
    return tidu.while_loop(lambda y: y < 10, lambda y: y * y, x)
END
tidu build "$TMP/f.py:f" -i x:f64[] -o "$TMP/f.json"
tidu convert "$TMP/f.json" --format c | grep -e STEPS -e return
tidu convert "$TMP/f.json" --max-steps 500 --format c | grep "define TIDU"
