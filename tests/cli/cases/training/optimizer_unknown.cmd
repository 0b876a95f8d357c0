# Optimizers have names, or are documents.
tidu step samples/f.json --wrt x --optimizer adamx
