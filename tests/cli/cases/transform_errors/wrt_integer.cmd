# An input of integers carries no tangent.
tidu linearize tests/cli/cases/transform_errors/long.json --wrt count
