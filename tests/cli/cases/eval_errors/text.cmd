# A value that is no number.
tidu eval samples/f.json --set 'x="three"'
