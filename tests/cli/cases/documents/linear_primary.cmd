# A linear graph with a primary node.
tidu check tests/cli/cases/documents/linear_primary.json
