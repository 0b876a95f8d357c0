# An attr that the op does not have.
tidu check tests/cli/cases/documents/unknown_attr.json
