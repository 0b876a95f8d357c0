# An output that no graph has.
tidu materialize samples/f.json --output x
