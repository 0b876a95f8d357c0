tidu build samples/f.json
