# Only linear graphs have a matrix.
tidu matrix samples/f.json
