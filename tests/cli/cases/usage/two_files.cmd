# One file too many.
tidu transpose samples/f.json samples/f.json
