# An input of a record type becomes constants, put together.
tidu materialize tests/cli/cases/eval_records/trip.json --output square --set 't={"start": 0, "legs": [1, 2], "riders": 1, "paid": false, "to": [{"x": 2, "y": [1, 2, 3]}, 0]}'
