# Where --one-pass says that it is one call, what h@1 reads depends on its own tangents.
tidu build 'y = x * x' -i x:f64[] | tidu linearize --wrt x -o $TMP/f1.json
tidu build 'h = w * x' -i x:f64[] -i w:f64[] --name h | tidu linearize --wrt x -o $TMP/h1.json
tidu resolve $TMP/h1.json $TMP/f1.json --bind w=y@1 --one-pass 1
