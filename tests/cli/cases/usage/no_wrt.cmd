# What --wrt is.
tidu grad samples/f.json
