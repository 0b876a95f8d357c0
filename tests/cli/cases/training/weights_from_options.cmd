# The model stays as it is.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights-from w.npz
