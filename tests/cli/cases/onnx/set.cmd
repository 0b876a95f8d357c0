# An input is made a constant.
tidu convert tests/cli/cases/onnx/mlp.onnx --set 'x=[[1,2,3]]' --format json
