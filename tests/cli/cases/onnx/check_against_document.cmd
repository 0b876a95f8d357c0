# Only models are compared with other runtimes.
tidu check samples/f.json --against onnxruntime
