# A library's op in a document: its derivative is a node that stands for the transpose of backward.
tidu linearize tests/cli/cases/own/user.json --ops tests/cli/cases/own/library.json --wrt a
