# A values file that holds no object.
echo '[3]' | tidu eval samples/f.json --inputs -
