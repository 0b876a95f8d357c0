# Products have a sign.
tidu eval 2x --set x=3
