# A document comes back from ONNX as it was.
tidu linearize samples/rosenbrock.json --wrt x -o "$TMP/r.onnx"
tidu convert "$TMP/r.onnx" --format json | tidu diff --exact - <(tidu linearize samples/rosenbrock.json --wrt x)
