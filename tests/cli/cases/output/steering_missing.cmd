# A missing input of several lines is told in one.
tidu eval tests/cli/cases/output/steering.json
