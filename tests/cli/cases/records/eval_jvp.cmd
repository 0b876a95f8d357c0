# A tangent that is null is zero, as is a field of one.
tidu linearize samples/segment.json --wrt s |
  tidu eval --set 's={"a": {"x": 0, "y": 1}, "b": {"x": 3, "y": 5}}' --set 's@1={"a": null, "b": {"x": 1, "y": null}}'
