# An interrupt ends with the status of one.
cat > "$TMP/model.py" <<'END'
def f(x):
    raise KeyboardInterrupt
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[3]'
