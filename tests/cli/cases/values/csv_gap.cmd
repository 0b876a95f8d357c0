# A cell that is missing.
printf 'a,b\n1,2\n,3\n4,5\n' > $TMP/v.csv; tidu eval 'sum(a + b)' --inputs $TMP/v.csv
