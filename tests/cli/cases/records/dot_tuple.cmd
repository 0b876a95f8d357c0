# Items of a tuple, and their units.
tidu dot --types tests/cli/cases/records/tuple.json
