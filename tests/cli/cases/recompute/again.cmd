# What is materialized again is the same to the byte, and evaluation gives the same numbers.
tidu build 'sin(sin(sin(sin(sin(sin(sin(sin(x))))))))' -i x:f64[1000] | tidu linearize --wrt x | tidu transpose > $TMP/g.json
tidu materialize --quiet --recompute sqrt $TMP/g.json -o $TMP/less.json
tidu materialize $TMP/less.json | cmp - $TMP/less.json
tidu check $TMP/less.json
python -c 'import json; print(json.dumps({"x": [0.001 * k for k in range(1000)], "y@-1": [1.0] * 1000}))' > $TMP/at.json
tidu eval $TMP/less.json --inputs $TMP/at.json | cmp - <(tidu eval $TMP/g.json --inputs $TMP/at.json)
