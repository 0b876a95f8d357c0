# The browser opens files, so --open needs one.
tidu view samples/f.json --open
