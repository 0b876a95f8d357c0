# A compressed file that ends too early.
gzip -c samples/f.json | head -c 100 | tidu info
