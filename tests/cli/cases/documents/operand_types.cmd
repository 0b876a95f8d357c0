# Operands whose types do not fit.
tidu check tests/cli/cases/documents/operand_types.json
