# The path says where a field is not known.
tidu eval tests/cli/cases/eval_records/trip.json --set now=0 --set 't={"start": 0, "legs": [1, 2], "riders": 1, "paid": true, "to": [{"x": 2, "yy": 3}, 0]}'
