# A document that ends too early.
head -c 150 samples/f.json | tidu check
