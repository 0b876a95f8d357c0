# The values that it starts from are not written over.
echo '{"x": 1}' > $TMP/x.json
tidu minimize 'x**2' --inputs $TMP/x.json --wrt x -o $TMP/x.json
