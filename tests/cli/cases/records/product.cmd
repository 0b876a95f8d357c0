# There is no square of a duration: only numbers are multiplied.
tidu check tests/cli/cases/records/product.json
