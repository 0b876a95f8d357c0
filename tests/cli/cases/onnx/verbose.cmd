# What is read and written.
tidu convert --verbose tests/cli/cases/onnx/mlp.onnx --dim batch=1 -o "$TMP/mlp.onnx"
