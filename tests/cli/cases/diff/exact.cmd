# Names count to the letter.
tidu diff --exact samples/f.json tests/cli/cases/diff/g.json
