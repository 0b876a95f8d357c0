# A list.
tidu check tests/cli/cases/documents/not_an_object.json
