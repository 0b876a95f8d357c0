# A file has its types.
tidu grad samples/f.json --types samples/demo.json
