# Likewise where the name stands in a call of another kind.
tidu eval 'fixed_point(x)' --set x=1
