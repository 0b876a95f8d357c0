# A model's input keeps its dtype.
tidu convert tests/cli/cases/onnx/mlp.onnx --input-type 'x=i32[2,3]'
