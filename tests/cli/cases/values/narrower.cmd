# An array of f64 for an input of f32: what would change, and the way out.
python -c 'import numpy, sys; numpy.save(sys.argv[1], [0.5, 0.1])' "$TMP/x.npy"
tidu build 'x * x' -i x:f32[2] | tidu eval --set x=@"$TMP/x.npy"
