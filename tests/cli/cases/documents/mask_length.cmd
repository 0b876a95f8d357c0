# An active mask that is longer than the inputs.
tidu check tests/cli/cases/documents/mask_length.json
