# A key of 65 passes.
tidu check tests/cli/cases/documents/nesting.json
