# The linear head f@1 gives way to its transpose f@-1.
tidu linearize samples/f.json --wrt x | tidu transpose
