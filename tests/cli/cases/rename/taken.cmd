# A name that another has.
tidu rename samples/f.json --key x=y
