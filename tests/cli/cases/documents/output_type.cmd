# An output's declared type that is not its value's.
tidu check tests/cli/cases/documents/output_type.json
