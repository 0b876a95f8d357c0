# A malformed declaration is wrong usage.
tidu build 'x' -i 'x:f65[]'
