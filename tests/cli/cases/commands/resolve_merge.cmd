# Equal graphs become one.
tidu resolve samples/f.json samples/f.json | tidu info
