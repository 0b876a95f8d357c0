# What people call commands that have another name.
tidu plot samples/f.json
