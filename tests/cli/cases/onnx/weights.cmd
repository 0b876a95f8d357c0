# By a pattern of weights, whose values are in the file beside.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights "$TMP/w.npz" |
  tidu grad --wrt 'fc1.*' --inputs "$TMP/w.npz" --set 'x=[[1,2,3]]'
