# Only tangents may leave fields zero.
tidu eval tests/cli/cases/eval_records/trip.json --set now=0 --set 't={"start": null, "legs": [1, 2], "riders": 1, "paid": true, "to": null}'
