# A line for each valid document.
tidu check samples/f.json tests/cli/cases/commands/sin.json
tidu convert samples/f.json --format msgpack | tidu check
