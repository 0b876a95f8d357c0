# Gradient descent: a cotangent of minus the step makes a step of what vjp gives. In every format.
for format in json npz msgpack; do
  tidu vjp tests/cli/cases/eval_records/trip.json --wrt t --output square --inputs tests/cli/cases/eval_records/values.json --set square@-1=-0.25 -o $TMP/step.$format
  tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --output square --moves $TMP/step.$format
done
