# Two graphs of one name.
tidu check tests/cli/cases/documents/duplicate_graph.json
