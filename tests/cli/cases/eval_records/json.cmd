# Records, tuples, datetimes and durations as JSON has them.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json
