# What a function raises is one line, with its place.
cat > "$TMP/model.py" <<'END'
def f(x):
    return check(x)


def check(x):
    raise ValueError("x is not\nwhat it should be")
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[3]'
