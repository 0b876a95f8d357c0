# An object that is no key.
tidu check tests/cli/cases/documents/malformed_key.json
