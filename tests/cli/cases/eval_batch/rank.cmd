# A batch is one more axis, and arrays have 64 at most.
ones=$(python3 -c 'print(",".join(["1"] * 64))')
echo '{"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64['$ones']"}], "nodes": [{"op": "sin", "inputs": [0]}], "outputs": [{"key": "y", "value": 1}]}]}' > $TMP/f.json
python3 -c 'print("{\"x\": " + "[" * 64 + "1" + "]" * 64 + "}")' > $TMP/x.json
tidu eval $TMP/f.json --inputs $TMP/x.json | wc -c
python3 -c 'print("{\"x\": [" + "[" * 64 + "1" + "]" * 64 + "]}")' > $TMP/batch.json
tidu eval $TMP/f.json --inputs $TMP/batch.json --batch x=0
