# What a model holds, and whether its derivatives are right.
tidu check tests/cli/cases/onnx/mlp.onnx --dim batch=2 --all | sed -E '/numeric/s/(0|[0-9.]+e-[0-9]+)(,|$)/E\2/g'
