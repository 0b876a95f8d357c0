# An input of a record type: its fields are attributes.
tidu build 'sum(p.y) * p.x' -i 'p:{x: f64[], y: f64[3]}' | tee $TMP/r.json
tidu grad $TMP/r.json --wrt p --set 'p={"x": 2, "y": [1, 2, 3]}'
