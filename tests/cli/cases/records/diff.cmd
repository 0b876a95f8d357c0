# Record types and fields that differ.
tidu diff samples/segment.json tests/cli/cases/records/other_segment.json
