# An empty table is not called a document.
: > "$TMP/values.csv"; tidu eval samples/rosenbrock.json --inputs "$TMP/values.csv"
