# An inner value is made an input; what came before it is gone.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 --cut h1 --format json
