# An attr that is missing.
tidu check tests/cli/cases/documents/missing_attr.json
