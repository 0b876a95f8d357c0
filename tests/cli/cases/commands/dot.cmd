# The picture as DOT text.
tidu linearize samples/f.json --wrt x | tidu dot
