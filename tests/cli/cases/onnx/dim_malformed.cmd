# A size is a number.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=many
