# A type that does not exist.
tidu check tests/cli/cases/documents/unknown_type.json
