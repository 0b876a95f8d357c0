# Typed data says its unit, and is converted.
tidu eval tests/cli/cases/eval_records/trip.json --inputs tests/cli/cases/eval_records/values.json --output now.out --set 'now={"type": "datetime[h][]", "data": ["2026-02-01T05"]}'
