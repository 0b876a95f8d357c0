# What own ops stand for is written out.
tidu linearize tests/cli/cases/own/user.json --ops tests/cli/cases/own/library.json --wrt a | tidu materialize --inline
