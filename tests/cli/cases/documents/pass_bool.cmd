# A pass that is a bool.
tidu check tests/cli/cases/documents/pass_bool.json
