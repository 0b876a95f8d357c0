# A node that is not linear has no transpose rule.
tidu transpose tests/cli/cases/transform_errors/exp.json
