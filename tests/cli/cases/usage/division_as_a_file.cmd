# A formula that looks like a path.
tidu eval 1/3
