# A detached reference that is no digest.
tidu check tests/cli/cases/documents/malformed_digest.json
