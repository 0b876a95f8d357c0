# Whether every rule is there that derivatives of any order of this document need.
tidu check samples/f.json samples/softmax.json --closure
