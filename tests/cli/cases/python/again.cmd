# A graph, its source, and the graph of that.
tidu convert samples/compose_g.json -o "$TMP/g.py"
tidu build "$TMP/g.py:$(sed -n 's/^def \(.*\)(.*/\1/p' "$TMP/g.py")" -i u:f64[]
