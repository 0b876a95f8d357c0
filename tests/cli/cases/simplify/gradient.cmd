# The gradient of x³ has a cotangent 1, with which nothing need be multiplied. Simplified twice it is the same, and so are its values.
tidu grad samples/cube.json --wrt x -o "$TMP/gradient.json"
tidu materialize "$TMP/gradient.json" --simplify | tee "$TMP/less.json"
tidu materialize "$TMP/less.json" --simplify | cmp - "$TMP/less.json"
tidu eval "$TMP/less.json" --set x=3
