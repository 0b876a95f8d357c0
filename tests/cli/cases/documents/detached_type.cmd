# A node of detached references whose types cannot be told.
tidu check tests/cli/cases/documents/detached_type.json
