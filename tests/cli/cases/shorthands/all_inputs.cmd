# Without --wrt a gradient is by all inputs that have a derivative, and --verbose says which.
tidu grad 'x**2 * sin(y) + 0 * sum(where(n > 0, 1, 2))' -i n:i64[2] --set x=3 --set y=0 --set n=1,2 --verbose 2>&1 >$TMP/values | grep ' by ' | grep -v engine; cat $TMP/values
