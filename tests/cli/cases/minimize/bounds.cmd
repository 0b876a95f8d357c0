# The least within bounds: its gradient points out of them.
tidu minimize '(x - 3)**2 + (y - 1)**2' --set x=1 --set y=0 --wrt '*' --bounds x=:2 --bounds '*y=0:5' --trace $TMP/t.csv
cut -d, -f1 $TMP/t.csv
