# A shorthand takes a model's options itself: its weights are written, and are the values of its inputs.
tidu grad tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights "$TMP/w.npz" --wrt 'fc1.*' --set 'x=[[1,2,3]]' --quiet
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights "$TMP/w2.npz" -o "$TMP/m.json"
tidu grad "$TMP/m.json" --wrt 'fc1.*' --set 'x=[[1,2,3]]' --inputs "$TMP/w.npz" --quiet
tidu grad tests/cli/cases/onnx/mlp.onnx --dim batch=1 --stop h1 --wrt x --set 'x=[[1,2,3]]'
