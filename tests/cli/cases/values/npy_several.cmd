# npy holds one array.
tidu grad samples/rosenbrock.json --wrt x --wrt y --set x=1 --set y=2 -o "$TMP/grad.npy" || ls -A "$TMP"
