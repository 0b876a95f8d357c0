# Two graphs that disagree on an input's type.
tidu resolve tests/cli/cases/commands/g.json tests/cli/cases/resolve_errors/f32.json
