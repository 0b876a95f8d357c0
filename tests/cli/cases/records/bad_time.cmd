# Times that are finer than the unit would lose something.
tidu eval samples/events.json --inputs tests/cli/cases/records/events_values.json --set 'due=["2026-01-01T09:00:00.0005", 0, 0, 0]'
