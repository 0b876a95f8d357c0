# A directory.
tidu check samples
