# Operations and memory that a detached reference hides.
tidu info tests/cli/cases/info/unknown.json
