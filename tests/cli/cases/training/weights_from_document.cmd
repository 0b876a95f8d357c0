# Documents have no weights.
tidu convert samples/f.json --weights-from <(echo '{"x": 1}') -o $TMP/g.onnx
