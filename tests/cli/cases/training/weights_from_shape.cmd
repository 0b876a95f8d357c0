# Values of another shape.
tidu convert tests/cli/cases/onnx/mlp.onnx --weights-from <(echo '{"fc1.bias": [1, 2]}') -o $TMP/trained.onnx
