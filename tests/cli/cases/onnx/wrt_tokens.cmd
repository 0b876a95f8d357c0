# Tokens are indices: their derivative is zero.
tidu grad tests/cli/cases/onnx/tied.onnx --wrt tokens
