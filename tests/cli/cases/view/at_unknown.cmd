# Small documents have no groups.
tidu view samples/f.json --at norm
