# Wrong usage: a malformed key.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u=y@
