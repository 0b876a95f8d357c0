# Wrong usage: no output.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u
