# Records of two types are not added, even if their fields are alike.
tidu check tests/cli/cases/records/add_types.json
