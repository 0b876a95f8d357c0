# Records are objects; datetimes are ISO 8601 text.
tidu eval samples/events.json --inputs tests/cli/cases/records/events_values.json
