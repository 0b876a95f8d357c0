# A linear head whose input is bound is a part of the linear map, and not transposed.
tidu linearize samples/f.json --wrt x -o $TMP/f@1.json
tidu compose --quiet $TMP/f@1.json $TMP/f@1.json | tidu transpose
