# A pattern that matches weights which are constants.
tidu grad tests/cli/cases/onnx/tied.onnx --wrt 'g.*'
