# A cell that is no number.
printf 'a,b\n1,2\n,x\n' > $TMP/v.csv; tidu eval 'a + sum(b)' --inputs $TMP/v.csv
