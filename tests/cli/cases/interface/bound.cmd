# An input that the derivative does not depend on may be bound like any other, and is then none.
tidu build '2*x' -i x:f64[] | tidu grad --wrt x -o "$TMP/g.json"
tidu build 'exp(t)' -i t:f64[] --name h --output z -o "$TMP/h.json"
tidu resolve "$TMP/h.json" "$TMP/g.json" --bind x=z | tidu materialize
tidu compose "$TMP/h.json" "$TMP/g.json" | tidu materialize | tidu eval --set t=1
