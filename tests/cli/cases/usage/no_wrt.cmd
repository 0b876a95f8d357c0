# What --wrt is.
tidu linearize samples/f.json
