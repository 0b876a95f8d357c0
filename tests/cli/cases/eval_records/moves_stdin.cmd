# Tangents come through a pipe; --move wins over a file.
echo '{"x@-1": -1, "other": 5}' | tidu eval samples/f.json --set x=3 --moves -
echo '{"x": -1}' | tidu eval samples/f.json --set x=3 --moves - --move x=1
