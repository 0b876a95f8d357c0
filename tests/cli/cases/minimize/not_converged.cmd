# What did not converge is written, and the status is 1.
tidu minimize samples/rosenbrock.json --wrt x --wrt y --set x=-1 --set y=1 --max-iterations 2 -o $TMP/fit.json 2>&1 | sed 's/after.*//' || test -s $TMP/fit.json
