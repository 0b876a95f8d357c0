# A version that is not read here.
tidu check tests/cli/cases/documents/version.json
