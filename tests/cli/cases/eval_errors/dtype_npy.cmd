# An array of a dtype that is no narrower float and no integer: it is not converted.
python -c 'import numpy, sys; numpy.save(sys.argv[1], numpy.zeros(2, "c16"))' "$TMP/a.npy"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set a=@"$TMP/a.npy"
