# grad of grad of x y by x: x is an input of the first, and y, which it does not depend on, one of the second.
tidu build 'x*y' -i x:f64[] -i y:f64[] | tidu grad --wrt x -o "$TMP/first.json"
tidu grad "$TMP/first.json" --wrt x | tee "$TMP/second.json"
tidu eval "$TMP/second.json" --set x=1 --set y=2
tidu eval "$TMP/second.json"
tidu grad "$TMP/first.json" --wrt y --set x=1 --set y=2
