# --bind composes graphs: the input of one is the output of the other, and transforms see through it.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u=y
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u=y | tidu linearize --wrt x | tidu eval --set x=3 --set x@1=1
