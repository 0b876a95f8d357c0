# A file of PyTorch: what to do there, by its content.
cat tests/cli/cases/documents/pytorch.pt | tidu grad --wrt x
