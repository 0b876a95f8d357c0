# What check, info, dot and eval say of a graph with inputs that nothing needs.
tidu build '2*x' -i x:f64[] -i y:f64[3] | tidu grad --wrt x -o "$TMP/g.json"
tidu check "$TMP/g.json" --all
tidu info "$TMP/g.json"
tidu dot "$TMP/g.json" | grep -c shape=ellipse
tidu eval "$TMP/g.json" --set x=3 --set y=[1,2,3]
