# A reshape to a number of elements that is another for some sizes: the ways out, if there are any.
for sizes in '"M",3' '3,4' '"N//2",6' '"min(N,16)",3' '"K",2' '"N",4'; do
    echo '{"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[N,3]"}], "nodes":
        [{"op": "reshape", "inputs": [0], "attrs": {"new_sizes": ['$sizes']}}], "outputs": [{"key": "y", "value": 1}]}]}' | tidu check - || true
done
