# Too few inputs.
tidu check tests/cli/cases/documents/wrong_arity.json
