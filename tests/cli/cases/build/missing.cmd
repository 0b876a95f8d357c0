# A parameter without type or default is told with the option to give.
cat > "$TMP/model.py" <<'END'
def f(x, w):
    return x @ w
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[3]'
