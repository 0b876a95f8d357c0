# The option that differs least.
tidu grad samples/f.json --wtr x
