# A tangent of a key of 64 passes.
tidu linearize tests/cli/cases/transform_errors/nested.json --wrt x$(printf '@1%.0s' $(seq 64))
