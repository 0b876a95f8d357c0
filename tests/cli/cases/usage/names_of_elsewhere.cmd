# Operations that other places know by these names.
printf '{"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [{"op": "fixed_point", "inputs": [0]}], "outputs": [{"key": "y", "value": 1, "type": "f64[]"}]}]}' > "$TMP/f.json"; tidu eval "$TMP/f.json" --set x=1
