# With --quiet there is no note, and the same graph.
tidu build 'sin(sin(sin(sin(sin(sin(sin(sin(x))))))))' -i x:f64[1000] | tidu linearize --wrt x | tidu transpose > $TMP/g.json
tidu materialize --recompute sqrt $TMP/g.json 2> $TMP/note | cmp - <(tidu materialize --recompute sqrt --quiet $TMP/g.json)
grep -c note $TMP/note
