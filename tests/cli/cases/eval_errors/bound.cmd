# An input that is bound cannot be set.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u=y | tidu eval --set u=1
