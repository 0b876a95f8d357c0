# What a shorthand with a model's options stands for.
tidu grad tests/cli/cases/onnx/mlp.onnx --input-type 'x=f32[2,3]' --weights w.npz --stop h1 --wrt x --set x@-1=0 --pipeline
tidu jvp tests/cli/cases/onnx/mlp.onnx --dim batch=1 --cut h1 --cut h2 --cast f64 --wrt h2 --pipeline
