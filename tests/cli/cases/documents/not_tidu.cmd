# JSON of another kind.
tidu check tests/cli/cases/documents/not_tidu.json
