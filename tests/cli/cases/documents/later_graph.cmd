# A reference to a graph that comes later.
tidu check tests/cli/cases/documents/later_graph.json
