# A dtype that there is not.
tidu check --ops sin --dtype f128
