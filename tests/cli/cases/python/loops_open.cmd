# NumPy source is built again as it was written: loops and branches too, in open sizes.
printf 'import numpy as np\nimport tidu\ndef f(h, x):\n    h, hs = tidu.scan(lambda h, x: (np.tanh(h + x), h), h, x)\n    return tidu.cond(hs.sum() > 0, np.sin, np.cos, h), hs / x.shape[0]\n' > "$TMP/f.py"
cd "$TMP"
tidu build f.py:f -i 'h:f64[]' -i 'x:f64[N]' -o f.json
tidu convert f.json -o g.py
sed -n '/N = /,$p' g.py
tidu show g.py:f -i 'h:f64[]' -i 'x:f64[N]'
{ python3 -c 'import g; g.f(1.0, [])' 2>&1 || true; } | tail -n 1
tidu build 'sum(x)' -i 'x:f64[M*N]' -o h.json
tidu convert h.json -o h.py
