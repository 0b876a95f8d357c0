# A branch on a value is told with file and line.
cat > "$TMP/model.py" <<'END'
def f(x):
    if x > 0:
        return x
    return -x
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[]'
