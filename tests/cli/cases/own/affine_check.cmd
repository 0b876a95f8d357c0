# check finds that without derivatives being asked for.
tidu check tests/cli/cases/own/affine.json
