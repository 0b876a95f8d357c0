# A value that there is not.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --cut h11
