# A values file with a malformed key.
echo '{"x@": 3}' | tidu eval samples/f.json --inputs -
