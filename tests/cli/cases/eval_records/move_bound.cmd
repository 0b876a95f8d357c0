# What is bound is a value of a graph, and not free to move.
tidu resolve samples/f.json tests/cli/cases/commands/g.json --bind u=y | tidu eval --move u=1
