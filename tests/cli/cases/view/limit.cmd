# Pages have the limit of pictures.
tidu view samples/mlp.json --limit 3
