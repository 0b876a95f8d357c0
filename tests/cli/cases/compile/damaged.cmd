# A program that is cut off.
tidu compile samples/f.json -o $TMP/p
head -c 300 $TMP/p | tidu eval --set x=3
