# More elements than any memory holds are refused as soon as they are read.
tidu check tests/cli/cases/documents/huge_shape.json
