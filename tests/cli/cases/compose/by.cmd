# Wrong usage: another way.
tidu compose samples/f.json samples/f.json --by size
