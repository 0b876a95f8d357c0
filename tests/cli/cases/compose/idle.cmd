# An output that no input takes is told.
tidu compose tests/cli/cases/compose/weighted.json samples/f.json | tidu eval --set y=2 --set x=3
