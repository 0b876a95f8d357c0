# An output of a value that is not there.
tidu check tests/cli/cases/documents/output_value.json
