# --detach writes the new graphs only; they name what they read by digest.
tidu linearize samples/f.json --wrt x --detach
