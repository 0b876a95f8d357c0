# --highlight fades what is on no path through a key.
tidu dot samples/two_outputs.json --highlight x
