# After -- everything is a file.
tidu check -- --types
