# An input bound twice.
tidu resolve samples/f.json tests/cli/cases/commands/g.json tests/cli/cases/resolve_errors/h.json --bind u=y --bind u=x2
