# The type of an input, from which sizes follow; from standard input.
tidu convert --input-type 'x=f64[2,3]' --cast f64 --format json < tests/cli/cases/onnx/mlp.onnx
