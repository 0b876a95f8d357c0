# One size for a dimension.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --dim batch=2
