# Integers have no sum to differentiate.
tidu grad '1 * (x > 0)' --sum --set x=1,2
