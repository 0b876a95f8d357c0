# Where a derivative needs values that the document does not have, such as cos x, a residual graph holds them.
tidu linearize tests/cli/cases/commands/sin.json --wrt x
