# The tangent of a record is a record of tangents, of the name of its type.
tidu linearize samples/segment.json --wrt s
