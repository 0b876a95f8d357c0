# The gradient of a model by its input, as a model.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 | tidu grad --wrt x -o "$TMP/saliency.onnx"
tidu eval "$TMP/saliency.onnx" --set 'x=[[1,2,3]]'
