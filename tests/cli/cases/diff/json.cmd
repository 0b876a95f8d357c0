# For programs.
tidu diff --json samples/f.json tests/cli/cases/diff/g.json
