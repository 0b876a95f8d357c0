# A file of values makes inputs constants; it may hold more, but not none.
echo '{"x": 3, "more": 1}' > $TMP/data.json; tidu materialize samples/rosenbrock.json --inputs $TMP/data.json --needed-inputs | tidu eval --set y=1; echo '{"z": 1}' > $TMP/data.json; tidu materialize samples/rosenbrock.json --inputs $TMP/data.json
