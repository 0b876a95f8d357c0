# Declared result types that are not the ones inferred.
tidu check tests/cli/cases/documents/declared_types.json
