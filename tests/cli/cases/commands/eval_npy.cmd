# --set KEY=@FILE reads a NumPy array, and npz holds the results as one.
python -c 'import numpy, sys; numpy.save(sys.argv[1], 3.0)' "$TMP/x.npy"
tidu eval samples/f.json --set x=@"$TMP/x.npy" -o "$TMP/y.npz"
python -c 'import numpy, sys; print(dict(numpy.load(sys.argv[1])))' "$TMP/y.npz"
