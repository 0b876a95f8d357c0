# A field that is missing.
tidu check tests/cli/cases/documents/missing_field.json
