# An op that does not exist.
tidu check tests/cli/cases/documents/unknown_op.json
