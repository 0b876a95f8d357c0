# A mask that is traced gives no shape.
cat > "$TMP/model.py" <<'END'
def f(x):
    return x[x > 0].sum()
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[3]'
