# A field that the format does not have.
tidu check tests/cli/cases/documents/unknown_field.json
