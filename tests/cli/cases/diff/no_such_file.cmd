# Trouble is status 2, as 1 says that documents differ.
tidu diff samples/f.json tests/cli/cases/diff/none.json
