# A pass that no float can hold.
tidu check tests/cli/cases/documents/pass_infinite.json
