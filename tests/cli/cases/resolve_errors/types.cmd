# An input and a value of different types.
tidu resolve samples/f.json tests/cli/cases/resolve_errors/f32.json --bind u=y
