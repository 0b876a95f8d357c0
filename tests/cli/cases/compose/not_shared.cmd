# An input to share that no two documents have.
tidu compose samples/f.json tests/cli/cases/compose/weighted.json --share y
