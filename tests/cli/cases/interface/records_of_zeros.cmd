# Records whose tangents are zero, some of which have no field at all.
cat > "$TMP/f.json" <<'END'
{"tidu": 1, "types": {"Flags": {"on": "bool[]"}, "P": {"x": "f64[]", "y": "f64[2]"}},
 "graphs": [{"name": "f",
   "inputs": [{"key": "p", "type": "P"}, {"key": "q", "type": "f64[]"}, {"key": "g", "type": "Flags"}],
   "nodes": [{"op": "field", "inputs": [0], "attrs": {"name": "x"}}, {"op": "mul", "inputs": [3, 3]}],
   "outputs": [{"key": "y", "value": 4}, {"key": "flags", "value": 2}, {"key": "same", "value": 0}]}]}
END
tidu vjp "$TMP/f.json" --wrt p --wrt q | tee "$TMP/vjp.json" | tidu info | tail -n 3
tidu eval "$TMP/vjp.json" --set 'p={"x": 3, "y": [1, 2]}' --set y@-1=1 --set 'same@-1=null'
tidu grad "$TMP/f.json" --wrt q --output y | tidu grad --wrt p --set 'p={"x": 3, "y": [1, 2]}'
tidu linearize "$TMP/f.json" --wrt q --output flags | tidu transpose | tidu linearize --wrt q | tidu transpose | tidu info | tail -n 2
tidu jacobian "$TMP/f.json" --wrt p --wrt q --reverse --set 'p={"x": 3, "y": [1, 2]}'
