# A pattern that matches no input.
tidu convert tests/cli/cases/onnx/mlp.onnx --dim batch=1 | tidu grad --wrt 'fc3.*'
