# An op that is defined nowhere.
tidu check tests/cli/cases/own/user.json
