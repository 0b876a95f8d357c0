# Cotangents have a colour of their own, and adds that accumulate them are circles.
tidu linearize samples/f.json --wrt x | tidu transpose | tidu dot
