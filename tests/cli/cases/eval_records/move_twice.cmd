# One input moves along one tangent.
echo '{"x": 1, "x@-1": 1}' | tidu eval samples/f.json --set x=3 --moves -
