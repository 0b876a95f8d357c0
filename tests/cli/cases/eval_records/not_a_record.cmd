# A number is no record.
tidu eval tests/cli/cases/eval_records/trip.json --set now=0 --set t=3
