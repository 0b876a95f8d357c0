# Packed nodes whose code is beyond the table.
tidu check tests/cli/cases/documents/packed_code.json
