# Constant data of another length than its type.
tidu check tests/cli/cases/documents/constant_data.json
