# Where derivatives end.
tidu check tests/cli/cases/onnx/rounding.onnx --json
