# Two graphs that share an input, and disagree on its type.
tidu check tests/cli/cases/documents/shared_input.json
