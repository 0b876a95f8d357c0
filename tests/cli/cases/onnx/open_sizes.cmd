# A model that leaves sizes open, which have the names of its dimensions.
tidu info tests/cli/cases/onnx/mlp.onnx
