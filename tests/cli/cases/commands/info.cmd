# What a document holds.
tidu linearize tests/cli/cases/commands/sin.json --wrt x | tidu info
