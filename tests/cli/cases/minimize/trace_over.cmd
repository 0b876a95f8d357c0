# A file that is not a trace is not written over.
echo 1,2 > $TMP/data.csv
tidu minimize 'x**2' --set x=1 --wrt x --trace $TMP/data.csv
