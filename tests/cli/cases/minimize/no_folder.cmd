# Where the result cannot be written is seen before the work.
tidu minimize 'x**2' --set x=1 --wrt x -o $TMP/nowhere/fit.json
