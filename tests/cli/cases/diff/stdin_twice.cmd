# Wrong usage.
tidu diff - -
