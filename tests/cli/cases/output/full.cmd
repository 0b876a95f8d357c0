# A device that is full.
tidu convert samples/f.json > /dev/full
