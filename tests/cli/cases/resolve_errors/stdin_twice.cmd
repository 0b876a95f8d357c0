# Wrong usage: one standard input for two documents.
tidu resolve - - < samples/f.json
