# What follows --stream is its kind.
tidu eval --stream samples/f.json < /dev/null
