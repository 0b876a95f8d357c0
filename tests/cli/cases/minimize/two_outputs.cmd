# One of two outputs is to be said.
tidu minimize samples/two_outputs.json --wrt r --set r=1 --set theta=1
