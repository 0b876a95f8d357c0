# A block for each output and input, by the shapes of both.
tidu jacobian samples/two_outputs.json --wrt r --wrt theta --set r=2 --set theta=0.5
