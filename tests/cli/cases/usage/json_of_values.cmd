# --json is of kinks.
tidu eval samples/cube.json --set x=2 --json || true
tidu eval samples/cube.json --set x=2 --kinks --json -o kinks.json
