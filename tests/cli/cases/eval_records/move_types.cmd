# Typed data states the type of a tangent; an object of periods is the structural tangent of a datetime.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --output now.out --move 'now={"type": "duration[h][]", "data": [2]}'
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --output now.out --move 'now={"instant": {"periods": 5}}'
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --output trip --move 't={"start": {"type": "duration[D][]", "data": [0.5]}, "legs": {"type": "duration[m][2]", "data": [30, -15]}}'
