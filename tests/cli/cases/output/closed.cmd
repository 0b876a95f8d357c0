# No standard output at all.
tidu convert samples/f.json >&-
