# What names would do to a terminal is escaped in messages, too, which are one line.
tidu check tests/cli/cases/output/steering.json
