# Two inputs of one key.
tidu check tests/cli/cases/documents/duplicate_input.json
