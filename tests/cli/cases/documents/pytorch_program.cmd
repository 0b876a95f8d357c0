# A program of torch.export, of which the beginning is enough.
tidu convert tests/cli/cases/documents/pytorch.pt2 -o $TMP/model.onnx
