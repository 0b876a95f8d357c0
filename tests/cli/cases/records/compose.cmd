# What one graph gives, a record, is what the next one takes.
tidu materialize samples/segment.json --output middle |
  tidu compose - tests/cli/cases/records/norm.json | tidu eval --set 's={"a": {"x": 0, "y": 1}, "b": {"x": 3, "y": 5}}'
