# A values file that is not JSON.
echo '{"x": }' | tidu eval samples/f.json --inputs -
