# The smallest parts that differ, and the status 1.
tidu diff samples/f.json tests/cli/cases/diff/g.json
