# A line of values in, a line out; one that is wrong is answered as well.
printf '{"x": 3}\n{"x": "three"}\n\n{"x": 4, "id": 7}\n' | tidu eval samples/f.json --stream
