# A step is a document.
tidu step samples/f.json --wrt x -o $TMP/step.npz
