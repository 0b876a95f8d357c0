# A linear graph with a node that has no active input.
tidu check tests/cli/cases/documents/linear_inactive.json
