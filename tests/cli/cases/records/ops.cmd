# The primitives of records and of moving along tangents.
tidu ops record field difference retract
