# The same, for programs.
tidu linearize tests/cli/cases/commands/sin.json --wrt x | tidu info --json
