# Arrays have no formula.
tidu show --formula samples/mlp.json
