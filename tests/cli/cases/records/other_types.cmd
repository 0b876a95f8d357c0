# Two record types of one name are two types.
tidu resolve samples/segment.json tests/cli/cases/records/other_segment.json
