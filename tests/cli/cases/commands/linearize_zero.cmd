# An output that does not depend on --wrt has the tangent null: a structural zero.
tidu linearize tests/cli/cases/commands/sin.json --wrt x --output kk --output y | tidu info
