# Transposing puts backward in.
tidu linearize tests/cli/cases/own/user.json --ops tests/cli/cases/own/library.json --wrt a | tidu transpose
