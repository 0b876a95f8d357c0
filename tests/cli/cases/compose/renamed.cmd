# By name, since y is on both sides. The x of the one is not the x of the other, unless it is shared.
tidu compose samples/f.json tests/cli/cases/compose/weighted.json | tidu eval --set x=3 --set x.2=10
tidu compose samples/f.json tests/cli/cases/compose/weighted.json --share x | tidu eval --set x=3
