# More outputs than inputs.
tidu compose samples/two_outputs.json samples/f.json --by position
