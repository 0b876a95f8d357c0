# A head that is not linear.
tidu transpose samples/f.json
