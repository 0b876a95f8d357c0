# A model that leaves sizes open.
tidu info tests/cli/cases/onnx/mlp.onnx
