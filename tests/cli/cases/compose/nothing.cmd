# No output has the key of an input.
tidu compose samples/f.json samples/f.json --by name
