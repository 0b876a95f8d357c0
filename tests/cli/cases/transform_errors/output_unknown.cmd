# An output that no graph has.
tidu linearize tests/cli/cases/transform_errors/long.json --wrt temperature --output presure
