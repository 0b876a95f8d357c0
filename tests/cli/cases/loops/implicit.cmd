# A root: its value, its derivatives in both modes, what it is as text, and what check says of a solver that stops early.
tidu eval samples/conformance/valid/root.json --set a=9 --set x0=1
tidu grad samples/conformance/valid/root.json --wrt a --wrt x0 --set a=9 --set x0=1
tidu derivative samples/conformance/valid/root.json --wrt a --order 3 --set a=9 --set x0=1
tidu show samples/conformance/valid/root.json
tidu check samples/conformance/valid/root.json --numeric
cat > "$TMP/model.py" <<'END'
import tidu

def early(a):
    newton = lambda f, x: tidu.fori_loop(0, 2, lambda k, x: x - f(x) / (2 * x), x)
    return tidu.root(lambda x: x * x - a, 1.0, newton)
END
tidu build "$TMP/model.py:early" -i 'a:f64[]' > "$TMP/early.json"
echo '{"a": 9}' > "$TMP/at.json"
tidu check "$TMP/early.json" --numeric --inputs "$TMP/at.json" 2>&1 | sed "s,$TMP/,," || true
