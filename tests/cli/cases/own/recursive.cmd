# Ops may not be defined by one another.
tidu info tests/cli/cases/own/recursive.json
