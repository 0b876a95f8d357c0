# What nothing uses is noted, and no error.
tidu check tests/cli/cases/check/notes.json
