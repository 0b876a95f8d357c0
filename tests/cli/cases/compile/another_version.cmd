# A program of another version of tidu.
tidu compile samples/f.json | sed 's/0[.]1[.]0/9.9.9/' | tidu eval --set x=3
