# Values and kinks as one object of JSON.
tidu eval '[abs(x), 1/x]' -i x:f64[] --set x=0 --kinks --json
tidu eval samples/cube.json --set x=2 --kinks --json
