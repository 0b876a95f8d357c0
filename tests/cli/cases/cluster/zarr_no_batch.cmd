# Zarr is for batches.
tidu eval samples/rosenbrock.json --set x=1 --set y=2 -o $TMP/z.zarr
