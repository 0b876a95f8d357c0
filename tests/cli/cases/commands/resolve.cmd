# What --detach cut loose is linked again, wherever the values are found.
tidu linearize samples/f.json --wrt x --detach | tidu resolve samples/f.json -
