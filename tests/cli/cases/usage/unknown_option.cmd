# A misspelt option.
tidu linearize samples/f.json --wtr x
