# A graph without a derivative holds nothing for long; it is as it is without the option.
tidu materialize samples/mlp.json --recompute sqrt | cmp - <(tidu materialize samples/mlp.json)
