# A tangent has a type that its input admits.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --move 'now={"type": "f64[]", "data": [1]}'
