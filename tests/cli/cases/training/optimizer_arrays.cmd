# An optimizer goes by elements.
tidu step samples/f.json --wrt x --optimizer samples/vector.json
