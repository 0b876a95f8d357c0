# Which outputs are residuals is to be said.
tidu minimize samples/two_outputs.json --wrt r --set r=1 --set theta=1 --method least_squares
