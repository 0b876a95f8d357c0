# A model brings no ops.
tidu convert samples/f.json --ops tests/cli/cases/onnx/mlp.onnx
