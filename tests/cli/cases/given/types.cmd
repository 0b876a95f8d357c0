# Values say the types of what is built, and are not evaluated at.
echo '{"x": [1, 2]}' > $TMP/data.json; tidu grad 'a * sum(x**2)' --types $TMP/data.json --wrt x | tidu eval --set x=1,3 --set a=2; tidu build 'a * sum(x)' --types $TMP/data.json | tidu eval --set x=1,2 --set a=3
