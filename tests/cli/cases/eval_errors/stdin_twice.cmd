# Wrong usage: one standard input for two purposes.
tidu eval --inputs - < samples/f.json
