# An input that is bound to a value.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u=y | tidu linearize --wrt u
