# An object with a key twice: readers would differ on which counts.
tidu check tests/cli/cases/documents/duplicate_member.json
