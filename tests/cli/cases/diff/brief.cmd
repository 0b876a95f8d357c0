# As diff -q.
tidu diff -q samples/f.json tests/cli/cases/diff/g.json
