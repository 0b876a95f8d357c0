# A file that is not there.
tidu step samples/f.json --wrt x --optimizer samples/optimizers/adem.json
