# A long loop that does the same each turn: a note names the function that keeps it a loop.
cat > "$TMP/model.py" <<'END'
def f(x):
    for _ in range(1500):
        x = x * 0.5 + 1.0
    return x
END
cd "$TMP"
tidu build model.py:f -i 'x:f64[]' -o f.msgpack && tidu eval f.msgpack --set x=0
