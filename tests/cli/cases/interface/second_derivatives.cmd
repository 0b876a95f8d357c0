# The second derivative of 2x in all four modes, and by the shorthands that have one: 0, and not an error.
tidu build '2*x' -i x:f64[] -o "$TMP/f.json"
all() { tidu materialize | tidu eval --set x=3; }
tidu linearize "$TMP/f.json" --wrt x | tidu linearize --wrt x | all
tidu linearize "$TMP/f.json" --wrt x | tidu transpose | tidu linearize --wrt x | all
tidu linearize "$TMP/f.json" --wrt x | tidu linearize --wrt x | tidu transpose | all
tidu linearize "$TMP/f.json" --wrt x | tidu transpose | tidu linearize --wrt x | tidu transpose | all
tidu grad "$TMP/f.json" --wrt x | tidu grad --wrt x --set x=3
tidu hvp "$TMP/f.json" --wrt x --set x=3 --set x@2=1
tidu hessian "$TMP/f.json" --wrt x --set x=3
tidu derivative "$TMP/f.json" --wrt x --order 2 --set x=3
tidu derivative "$TMP/f.json" --wrt x --order 2 | tidu jacobian --wrt x --reverse --set x=3
