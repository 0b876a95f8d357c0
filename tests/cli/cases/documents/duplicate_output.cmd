# Two outputs of one key.
tidu check tests/cli/cases/documents/duplicate_output.json
