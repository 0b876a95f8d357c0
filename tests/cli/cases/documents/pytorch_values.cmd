# Values in a file of PyTorch: as a file of values, of first values, and of weights.
tidu eval samples/f.json --inputs tests/cli/cases/documents/pytorch.pt || true
tidu eval samples/f.json --inputs tests/cli/cases/documents/pytorch.pt2 || true
tidu step 'loss = w * w' -i w:f64[] --wrt w --init --inputs - < tests/cli/cases/documents/pytorch.pt || true
tidu convert samples/pytorch/cnn.onnx --weights-from tests/cli/cases/documents/pytorch.pt -o $TMP/out.onnx || true
