# One date or time needs no quotes.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --set now=2026-02-01
