# A values file with a key twice.
echo '{"x": 3, "x": 4}' | tidu eval samples/f.json --inputs -
