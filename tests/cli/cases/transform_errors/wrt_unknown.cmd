# An input that no graph has.
tidu linearize tests/cli/cases/transform_errors/long.json --wrt temprature
