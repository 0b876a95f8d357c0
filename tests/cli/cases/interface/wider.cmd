# Integers and narrower floats for inputs of f64: an array, typed data, and files of values.
python -c 'import numpy, sys; numpy.save(sys.argv[1], numpy.array([1, 2])); numpy.savez(sys.argv[2], a=numpy.ones(2, "f4"))' "$TMP/a.npy" "$TMP/a.npz"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set a=@"$TMP/a.npy"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --inputs "$TMP/a.npz"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --set 'a={"type": "i32[2]", "data": [3, 4]}'
echo '{"a": {"type": "f32[2]", "data": [0.5, 4]}}' > "$TMP/a.json"
tidu eval tests/cli/cases/eval_errors/three.json --output a2 --inputs "$TMP/a.json"
