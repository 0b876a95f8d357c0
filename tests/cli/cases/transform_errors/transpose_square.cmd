# A product of two tangents is not linear.
tidu transpose tests/cli/cases/transform_errors/square.json
