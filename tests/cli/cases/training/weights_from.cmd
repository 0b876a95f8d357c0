# Values of weights go back into the model.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --weights $TMP/w.npz -o $TMP/m.json
tidu step $TMP/m.json --wrt 'fc*' --lr 0.1 -o $TMP/step.json
tidu eval $TMP/step.json --inputs $TMP/w.npz --set x=[[1,2,3]] --force -o $TMP/w.npz
tidu convert tests/cli/cases/onnx/mlp.onnx --weights-from $TMP/w.npz -o $TMP/trained.onnx
tidu convert $TMP/trained.onnx --dim batch=1 -o $TMP/t.json
tidu eval $TMP/t.json --set x=[[1,2,3]]; tidu eval $TMP/step.json --inputs $TMP/w.npz --set x=[[1,2,3]] --output score
