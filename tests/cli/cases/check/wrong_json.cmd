# The same for programs.
tidu check tests/cli/cases/check/masks.json --json
