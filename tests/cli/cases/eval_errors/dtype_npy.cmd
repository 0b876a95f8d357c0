# An array of another dtype: nothing is converted.
python -c 'import numpy, sys; numpy.save(sys.argv[1], numpy.zeros(2, "f4"))' "$TMP/a.npy"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set a=@"$TMP/a.npy"
