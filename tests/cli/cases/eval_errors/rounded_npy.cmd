# Integers for an input of floats, of which one has more digits than floats have.
python -c 'import numpy, sys; numpy.save(sys.argv[1], numpy.array([1, 2**53 + 1]))' "$TMP/a.npy"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set a=@"$TMP/a.npy"
