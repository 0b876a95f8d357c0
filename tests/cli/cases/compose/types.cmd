# An output and an input of different types.
tidu compose samples/f.json samples/vector.json
