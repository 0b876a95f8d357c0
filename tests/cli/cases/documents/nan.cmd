# NaN is no JSON.
tidu check tests/cli/cases/documents/nan.json
