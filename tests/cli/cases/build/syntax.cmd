# So is an error of Python's grammar.
cat > "$TMP/model.py" <<'END'
def f(x:
    return x
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[3]'
