# Everything that is wrong is listed; the error is the first of it.
tidu check tests/cli/cases/check/masks.json
