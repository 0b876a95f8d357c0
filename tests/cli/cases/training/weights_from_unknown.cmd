# Names that the model does not have.
tidu convert tests/cli/cases/onnx/mlp.onnx --weights-from <(echo '{"fc1.wieght": [1, 2]}') -o $TMP/trained.onnx
