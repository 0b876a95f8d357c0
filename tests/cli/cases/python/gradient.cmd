# A gradient as NumPy source, which stands alone.
tidu grad samples/mlp.json --wrt 'W*' --value --format py
