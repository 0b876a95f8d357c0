# A damaged model.
head -c 300 tests/cli/cases/onnx/mlp.onnx | tidu info
