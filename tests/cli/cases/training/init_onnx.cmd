# Values are written in formats of values.
tidu step samples/f.json --wrt x --init -o $TMP/state.onnx
