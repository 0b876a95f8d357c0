# Two formulas are both called f: renamed, they are linked.
tidu build 'x**3' -i x:f64[] | tidu rename --graph f=cube --key y=z -o "$TMP/cube.json"
tidu build 'x**2' -i x:f64[] -o "$TMP/square.json"
tidu resolve "$TMP/square.json" "$TMP/cube.json" | tidu eval --set x=2 --output y --output z
