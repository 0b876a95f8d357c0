# Custom operations are listed with the graphs that say what they are.
tidu show samples/activations.json
