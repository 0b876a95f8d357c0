# Weights of PyTorch are not written over by values.
cp tests/cli/cases/documents/pytorch.pt $TMP/w.npz
(cd $TMP && tidu eval 'x**2' --set x=3 -o w.npz)
