# Wrong usage: one standard input for two documents.
tidu compose - - < samples/f.json
