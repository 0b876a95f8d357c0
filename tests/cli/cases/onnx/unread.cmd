# All operators that are not read are told at once.
tidu convert tests/cli/cases/onnx/unread.onnx
