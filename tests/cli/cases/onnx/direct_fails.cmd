# The weights are not written where the result is not.
tidu grad tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights "$TMP/w.npz" --wrt x --set 'x=[1]' || ls "$TMP"; false
