# A values file that is not there.
tidu eval samples/f.json --inputs nowhere.json
