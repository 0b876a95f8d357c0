# A gradient of a model with open sizes is one file for all of them.
tidu grad tests/cli/cases/onnx/mlp.onnx --wrt x -o "$TMP/gradient.onnx" && tidu convert "$TMP/gradient.onnx" | tidu show
tidu eval "$TMP/gradient.onnx" --set 'x=[[1,2,3],[1,2,3]]' && tidu convert "$TMP/gradient.onnx" --size batch=1 | tidu show | head -1
