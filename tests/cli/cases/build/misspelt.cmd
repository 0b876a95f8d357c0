# A misspelt function of a file gets a suggestion.
cat > "$TMP/model.py" <<'END'
def loss(x):
    return x
END
cd "$TMP"
tidu build model.py:lost -i 'x:f64[3]'
