# A record is bound to a record of the same type, and the gradient goes through both graphs.
tidu resolve samples/segment.json tests/cli/cases/records/norm.json --bind p=middle |
  tidu linearize --wrt s | tidu transpose | tidu materialize --set n@-1=1 |
  tidu eval --set 's={"a": {"x": 0, "y": 1}, "b": {"x": 3, "y": 5}}'
