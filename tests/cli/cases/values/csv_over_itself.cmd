# csv that is read is not written over.
printf 'x\n1\n2\n' > $TMP/v.csv; tidu eval 'x * 2' --inputs $TMP/v.csv -o $TMP/v.csv; cat $TMP/v.csv
