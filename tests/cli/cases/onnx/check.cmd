# What a model holds, and whether its derivatives are right.
tidu check tests/cli/cases/onnx/mlp.onnx --dim batch=2 --all | sed -E 's/[0-9.]+e-[0-9]+/E/g'
