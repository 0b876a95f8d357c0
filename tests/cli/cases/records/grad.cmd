# The gradient by a record is a record.
tidu grad samples/segment.json --wrt s --output length --set 's={"a": {"x": 0, "y": 1}, "b": {"x": 3, "y": 5}}'
