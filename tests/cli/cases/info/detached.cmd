# What a detached graph reads is told apart.
tidu linearize samples/f.json --wrt x --detach | tidu info
