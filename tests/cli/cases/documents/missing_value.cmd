# A reference to a value of another graph, which that graph does not have.
tidu check tests/cli/cases/documents/missing_value.json
