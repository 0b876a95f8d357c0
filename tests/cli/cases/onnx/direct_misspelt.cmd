# An option of models that is misspelt.
tidu grad tests/cli/cases/onnx/mlp.onnx --dimm batch=1 --wrt x
