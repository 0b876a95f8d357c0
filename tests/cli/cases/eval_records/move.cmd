# Inputs move along tangents; fields that are left out stay, integers move by whole numbers.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --move 't={"start": 1500.6, "riders": 0.6, "to": [{"x": 1}, null]}' --move now=-60
