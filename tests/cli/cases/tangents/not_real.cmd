# A real number has no complex tangents.
tidu linearize samples/cube.json --wrt x --tangent 'x=c128[]'
