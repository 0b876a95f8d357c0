# A binding of an input that no graph has.
tidu check tests/cli/cases/documents/binding_unknown.json
