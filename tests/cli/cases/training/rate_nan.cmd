# Numbers are finite.
tidu step samples/f.json --wrt x --lr nan
