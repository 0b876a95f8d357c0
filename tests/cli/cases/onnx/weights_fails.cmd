# The weights are not written where the document is not.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights "$TMP/w.npz" -o "$TMP/nowhere/mlp.json" || ls "$TMP"; false
