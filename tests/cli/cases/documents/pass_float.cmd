# A pass that is not an integer.
tidu check tests/cli/cases/documents/pass_float.json
