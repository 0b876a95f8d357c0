# A binding to a value of a graph that is not before the input's.
tidu check tests/cli/cases/documents/binding_late.json
