# The pipeline says where types come from.
echo '{"x": [1, 2]}' > $TMP/data.json; tidu grad 'sum(x)' --types $TMP/data.json --pipeline; tidu grad 'x**2 * a' --set x=1,2 --batch x=0 --set a=1 --pipeline
