# Bounds of a size that nothing has, such as one that is spelled otherwise, are noted, and no error.
tidu check tests/cli/cases/check/sizes_of_nothing.json; tidu show tests/cli/cases/check/sizes_of_nothing.json
