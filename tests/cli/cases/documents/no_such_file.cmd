# A file that is not there.
tidu check nowhere.json
