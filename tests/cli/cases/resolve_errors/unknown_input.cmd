# An input that no graph has.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind uu=y
