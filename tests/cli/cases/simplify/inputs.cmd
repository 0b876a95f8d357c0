# The interface stays, unless only needed inputs are asked for: x - x is 0 where nothing is infinite or NaN, and needs no x.
tidu build 'y * 2 + (x - x)' -i x:f64[] -i y:f64[] -o "$TMP/f.json"
tidu materialize "$TMP/f.json" --simplify | tidu info | grep evaluating
tidu materialize "$TMP/f.json" --simplify --assume finite --assume no-signed-zeros | tidu info | grep -E "inputs:|evaluating"
tidu materialize "$TMP/f.json" --simplify --assume finite --assume no-signed-zeros --needed-inputs | tidu info | grep inputs:
