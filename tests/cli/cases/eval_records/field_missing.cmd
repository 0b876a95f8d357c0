# Every field of a value is due.
tidu eval tests/cli/cases/eval_records/trip.json --set now=0 --set 't={"start": 0}'
