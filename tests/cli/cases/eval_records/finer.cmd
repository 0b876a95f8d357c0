# A time that is finer than the unit is not rounded.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --set now=2026-02-01T00:00:00.5
