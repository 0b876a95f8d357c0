# Values for other programs and for people.
for format in csv table; do
  tidu jacobian samples/vector.json --wrt x --set x=1,2,3 --format $format
  tidu grad samples/rosenbrock.json --wrt x --wrt y --value --set x=1 --set y=2 --format $format
done
tidu jacobian samples/vector.json --wrt x --set x=1,2,3 -o "$TMP/jacobian.npy"
python -c 'import numpy, sys; print(numpy.load(sys.argv[1]).shape)' "$TMP/jacobian.npy"
tidu grad samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2 -o "$TMP/grad.csv"
cat "$TMP/grad.csv"
