# A detached reference that no document defines stays, and is named on stderr.
tidu linearize samples/f.json --wrt x --detach | tidu resolve
