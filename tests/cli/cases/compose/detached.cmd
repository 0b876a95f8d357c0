# What reads detached values cannot be composed.
tidu linearize samples/f.json --wrt x --detach | tidu compose - samples/f.json
