# A structural zero needs a type.
tidu check tests/cli/cases/documents/zero_without_type.json
