# Operator sets are written from 18 on.
tidu convert samples/f.json -o "$TMP/f.onnx" --opset 17
