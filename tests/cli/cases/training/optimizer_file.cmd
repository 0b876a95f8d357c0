# A sample is the optimizer of its name.
tidu step samples/f.json --wrt x --optimizer samples/optimizers/adam.json -o $TMP/a.json
tidu step samples/f.json --wrt x --optimizer adam | tidu diff - $TMP/a.json --exact
