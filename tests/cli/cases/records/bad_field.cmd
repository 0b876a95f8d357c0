# Values of a record are checked field by field.
tidu eval samples/segment.json --set 's={"a": {"x": 0, "y": 1}, "b": {"x": 3, "z": 5}}'
