# A reference to a value that comes later: its own.
tidu check tests/cli/cases/documents/later_value.json
