# A document takes none of them.
tidu hvp samples/f.json --cut y --wrt x
