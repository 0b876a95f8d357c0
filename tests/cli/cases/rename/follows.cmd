# Tangents, cotangents and derived graphs follow the names that are changed.
tidu vjp samples/f.json --wrt x | tidu rename --key x=base --key y=power --graph f=square | tidu info
