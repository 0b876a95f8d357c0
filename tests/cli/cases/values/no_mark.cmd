# A file of an array without its mark.
cp samples/f.json "$TMP" && cd "$TMP"
python -c 'import numpy; numpy.save("x.npy", 3)'
tidu eval f.json --set x=x.npy
