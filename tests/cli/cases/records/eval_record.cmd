# A record comes out as an object, too.
tidu eval samples/segment.json --set 's={"a": {"x": 0, "y": 1}, "b": {"x": 3, "y": 5}}'
