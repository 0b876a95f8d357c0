# Weights are written as npz.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights "$TMP/w.json"
