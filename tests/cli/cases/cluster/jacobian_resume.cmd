# A matrix in chunks of columns, with nothing to go on from.
tidu jacobian samples/vector.json --wrt x --set 'x=[1,2,3]' --chunk 2 --resume -o $TMP/j.json && cat $TMP/j.json && ls $TMP
