# As diff -q: nothing.
tidu diff -q samples/f.json samples/f.json
