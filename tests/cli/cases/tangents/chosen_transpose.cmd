# The cotangent comes in the type that was chosen.
tidu linearize samples/cube.json --wrt x --tangent 'x=f32[]' | tidu transpose | tidu eval --set x=0.1 --set y@-1=1
