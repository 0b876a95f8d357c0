# Documents have no values to stop at by name.
tidu convert samples/f.json --stop x
