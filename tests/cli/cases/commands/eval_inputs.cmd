# Values from a file, which may hold more than is needed; --set wins over it.
tidu eval samples/f.json --inputs tests/cli/cases/commands/values.json
tidu eval samples/f.json --inputs tests/cli/cases/commands/values.json --set x=-1
