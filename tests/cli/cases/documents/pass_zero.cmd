# A pass below 1.
tidu check tests/cli/cases/documents/pass_zero.json
