# -h is --help.
tidu eval -h
