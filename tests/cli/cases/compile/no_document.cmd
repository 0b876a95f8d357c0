# Commands on documents refuse a program.
tidu compile samples/f.json -o $TMP/p
tidu dot $TMP/p
