# An output that the program does not have.
tidu compile samples/f.json | tidu eval --set x=3 --output z
