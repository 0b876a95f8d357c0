# ONNX has types of its own.
tidu convert samples/f.json --types -o "$TMP/f.onnx"
