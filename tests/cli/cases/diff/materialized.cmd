# Outputs that a document no longer has.
tidu linearize samples/f.json --wrt x -o $TMP/a.json; tidu materialize $TMP/a.json | tidu diff $TMP/a.json -
