# A document needs a graph.
tidu check tests/cli/cases/documents/no_graphs.json
