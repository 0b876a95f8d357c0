# A key that no graph has.
tidu dot samples/f.json --highlight z
