# Derivatives are to stop at a value that there is not.
tidu convert tests/cli/cases/onnx/tied.onnx --stop embeded
