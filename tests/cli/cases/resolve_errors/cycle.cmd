# Bindings that go round.
tidu resolve tests/cli/cases/commands/g.json tests/cli/cases/resolve_errors/h.json --bind v=v --bind u=x2
