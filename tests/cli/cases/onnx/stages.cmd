# Stages of a pipeline may be models, too.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 | tidu linearize --wrt x | tidu transpose | tidu materialize -o "$TMP/vjp.onnx"
tidu eval "$TMP/vjp.onnx" --set 'x=[[1,2,3]]' --set score@-1=1
