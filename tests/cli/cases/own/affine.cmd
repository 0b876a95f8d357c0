# A jvp that adds a constant is not linear.
tidu linearize tests/cli/cases/own/affine.json --wrt a
