# A dimension that there is not.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim bach=1
