# Values are for what is written with --init.
tidu step samples/f.json --wrt x --inputs samples/f.json
